"""models.py COHORT PROGRAM: a program of examples/models learns under every strategy, with real processes where a
strategy has several, and strategies in step have the same losses.

The figures of EXPECTED are those that docs/models.md states.
"""

import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

TIMEOUT = 150


class Expected(NamedTuple):
    """Losses of the last epoch: at most this with replicas in step, and with parameter servers."""

    epochs: int
    in_step: float
    asynchronous: float
    # How far strategies in step may differ in the losses of the first epoch.
    tolerance: float = 1e-4


EXPECTED = {
    "bert": Expected(2, 3.1, 3.4),
    # Batch normalization and a large learning rate multiply what rounding has made different.
    "densenet": Expected(2, 0.2, 0.5, tolerance=1e-2),
    "ncf": Expected(3, 0.25, 0.35),
    "nmt": Expected(2, 1.7, 2.8),
    "transformer": Expected(2, 0.5, 2.2),
}


def losses(command):
    """Those of all epochs, of which each task of a cluster says the same."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    found = set(re.findall(r"^(?:\[\w+:\d\] )?losses: (.*)$", done.stdout, re.MULTILINE))
    if len(found) != 1:
        sys.exit(f"{command} printed\n{done.stdout}")
    return [float(number) for number in found.pop().split()]


def expect_falls(name, found, expected, most):
    if len(found) != expected.epochs or found[-1] > most or found[-1] >= found[0]:
        sys.exit(f"{name}: losses {found}; {most} at most was expected of the last of {expected.epochs}")


def main(cohort, program):
    expected = EXPECTED[pathlib.Path(program).name]
    own = [program, "--epochs", str(expected.epochs), "--verbose", "0", "--strategy"]
    launch = [cohort, "launch", "--workers", "2"]
    in_step = {
        "one_device": losses([*own, "one_device", "--dropout", "0"]),
        "mirrored": losses([*own, "mirrored", "--dropout", "0", "--replicas", "2"]),
        "multi_worker": losses([*launch, "--", *own, "multi_worker", "--dropout", "0", "--replicas", "1"]),
    }
    for name, found in in_step.items():
        expect_falls(name, found, expected, expected.in_step)
        if abs(found[0] / in_step["one_device"][0] - 1) > expected.tolerance:
            sys.exit(f"the losses of the first epoch differ: {in_step}")
    served = losses([*launch, "--chief", "--ps", "1", "--", *own, "parameter_server", "--replicas", "1"])
    expect_falls("parameter_server", served, expected, expected.asynchronous)


if __name__ == "__main__":
    main(*sys.argv[1:])
