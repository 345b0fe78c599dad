"""Analyses columns beside tensorflow-transform on Beam's local runner, in turn, in one run.

Usage: transform.py BENCH_TRANSFORM [--only WORK,...] [--rows N] [--rounds N] [--no-control]

Works: sums (mean and variance of 10 columns of float32), quantiles (100 buckets of them), vocabulary (of
10^6 different tokens). The peer runs with in_memory, the fastest of Beam's modes here, and Arrow batches,
its fastest input. Ratios are of seconds, with what does not depend on the data; medians of the rounds.
Control: two cores scale before and after each work (cores.py), or nothing is said.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import cores
from harness import BENCH

WORKS = ["sums", "quantiles", "vocabulary"]
BATCH = 100_000
DISTINCT = 1_000_000


def peer_python():
    done = subprocess.run([BENCH.parent / "scripts" / "transform", "--environment"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return f"{done.stdout.strip().splitlines()[-1]}/bin/python"


def turn(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=BENCH)
    return json.loads(done.stdout.strip().splitlines()[-1])


def measure(arguments, python, work, directory):
    rows = str(arguments.rows)
    rounds = []
    for _ in range(arguments.rounds):
        ours = turn([arguments.program, work, directory, rows, str(BATCH)])
        peer = turn([python, "-m", "peers.tensorflow_transform_beam", work, directory, rows,
                     "in_memory", "1", str(BATCH)])
        rounds.append((ours, peer))
    return rounds


def median(rounds, side, key):
    return statistics.median(one[side][key] for one in rounds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", default=",".join(WORKS))
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-control", action="store_true", help="to try things out")
    arguments = parser.parse_args()
    arguments.program = str(pathlib.Path(arguments.program).resolve())
    unknown = set(arguments.only.split(",")) - set(WORKS)
    if unknown:
        parser.error(f"there is no work {', '.join(sorted(unknown))}; there are {', '.join(WORKS)}")
    python = peer_python()
    if arguments.no_control:
        print("NOT A RESULT: measured without the control, on a machine that may be busy")
    print(f"{arguments.rows} rows, medians of {arguments.rounds} rounds")
    with tempfile.TemporaryDirectory() as directory, cores.Control() as control:
        for work in arguments.only.split(","):
            # By the peer's Python, which has numpy.
            subprocess.run([python, "-m", "transform_data", work, directory, str(arguments.rows),
                            str(DISTINCT)], check=True, cwd=BENCH)
            run = lambda work=work: measure(arguments, python, work, directory)
            rounds, scale = (run(), 0) if arguments.no_control else cores.while_free(
                control.measure, run)
            print(f"{work:12} cohort {median(rounds, 0, 'seconds'):7.2f} s "
                  f"({median(rounds, 0, 'cpu_seconds'):.2f} of CPUs, "
                  f"{median(rounds, 0, 'peak_mib'):.0f} MiB)   peer "
                  f"{median(rounds, 1, 'seconds'):7.2f} s "
                  f"({median(rounds, 1, 'cpu_seconds'):.2f} of CPUs, "
                  f"{median(rounds, 1, 'peak_mib'):.0f} MiB)   "
                  f"{median(rounds, 1, 'seconds') / median(rounds, 0, 'seconds'):.1f} times as fast"
                  + (f"   control {scale:.2f}" if scale else ""))
            sys.stdout.flush()
        print(rounds[-1][1]["version"])


main()
