"""Row 35: two processes save into one directory; one may, the other is told who does.

two_writers.py VICTIM
"""

import os
import signal
import subprocess

import harness

_ROUNDS = 20


def expect_refused(outcome, holder):
    if outcome.code != "FAILED_PRECONDITION" or f"process {holder} " not in outcome.text:
        raise harness.Bad(f"ended with {outcome.code}, not naming process {holder}: {outcome.text}")


def hold_and_kill(victims, program, directory):
    """The holder is refused nothing; killed, it leaves nothing that stands in the next one's way."""
    holder = subprocess.Popen([program, "hold", directory, "1"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        if not holder.stdout.readline().startswith("saved"):
            raise harness.Bad("the first process did not save")
        for flags in ((), ("--manager",), ("--overwrite",), ("--async",)):
            expect_refused(victims.run("save", directory, 2, *flags), holder.pid)
        if (found := victims.must("check", directory)) != "value 1":
            raise harness.Bad(f"the refused ones left {found}")
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    victims.must("save", directory, 2)
    if (found := victims.must("check", directory)) != "value 2":
        raise harness.Bad(f"after the holder's death a save left {found}")


def race(victims, directory, tally):
    """Both start at once, and whoever saves holds the directory until it is killed."""
    for number in range(_ROUNDS):
        pair = [victims.start("hold", directory, number) for _ in range(2)]
        for process in pair:
            process.resume()
        outcomes = [process.wait() for process in pair]
        holders = [pair[place] for place in (0, 1) if outcomes[place].status is None]
        for process in holders:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        with tally.strike(f"race {number}"):
            # The loser need not be told by whom: the winner has the lock before it writes its name.
            codes = {outcome.code for outcome in outcomes}
            if len(holders) != 1 or "FAILED_PRECONDITION" not in codes:
                raise harness.Bad(f"not one holds the directory: {outcomes}")
            if (found := victims.must("check", directory)) != f"value {number}":
                raise harness.Bad(f"the winner left {found}")


def main(program, folder):
    victims = harness.Victims(program)
    tally = harness.Tally("row 35, two writers")
    with tally.strike("a holder that is killed"):
        hold_and_kill(victims, program, folder / "held")
    race(victims, folder / "race", tally)
    return tally.report(at_least=_ROUNDS)


if __name__ == "__main__":
    harness.run(main)
