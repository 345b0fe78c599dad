"""Row 33: a save is killed as it enters each of its system calls that change a file.

killed.py VICTIM MODE...
"""

import harness


def sweep_mode(victims, name, folder):
    tally = harness.Tally(f"row 33, killed, {name}")
    sweep = harness.Sweep(victims, harness.MODES[name], folder)
    for call in sweep.calls():
        if call.name in harness.CHANGES_NOTHING:
            continue
        with tally.strike(call):
            outcome = sweep.strike(call, "signal=KILL")
            if outcome.status != -9:
                raise harness.Bad(f"was not killed: {outcome.status}")
            tally.note("new" if sweep.expect_good() == 2 else "old")
    return tally.report(at_least=10)


def main(program, folder, *modes):
    victims = harness.Victims(program)
    status = 0
    for mode in modes:
        status |= sweep_mode(victims, mode, folder / mode)
    return status


if __name__ == "__main__":
    harness.run(main)
