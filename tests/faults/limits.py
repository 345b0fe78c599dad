"""Row 31: files that may not grow (ulimit -f), and transfers that do half of what they are asked.

limits.py VICTIM size STEP
limits.py VICTIM short LIBRARY MODE...
"""

import harness


def sweep_size(victims, folder, step):
    """Every STEP-th limit, from nothing to what suffices."""
    tally = harness.Tally("row 31, limit of file size")
    sweep = harness.Sweep(victims, harness.MODES["restart"], folder / "sweep")
    for limit in range(0, 1 << 16, int(step)):
        with tally.strike(f"{limit} bytes"):
            outcome = sweep.start("--most-file-bytes", limit).resume().wait()
            note = sweep.expect_failure(outcome, {"RESOURCE_EXHAUSTED"})
            tally.note(note)
            if note == "saved":
                break
    return tally.report(at_least=4)


def contents(directory):
    """Without what has the time in it."""
    return {path.name: path.read_bytes() for path in directory.glob("ckpt-*")}


def halve_transfers(victims, program, folder, library, modes):
    """The files must be those of a save with whole transfers."""
    tally = harness.Tally("row 31, short reads and writes")
    halved = harness.Victims(program, {"LD_PRELOAD": library})
    for mode in modes:
        with tally.strike(mode):
            sweep = harness.Sweep(victims, harness.MODES[mode], folder / mode)
            harness.expect_ok(sweep.start().resume().wait())
            whole = contents(sweep.directory)
            log = folder / "log"
            process = sweep.start(victims=halved)
            with harness.traced(process, log, "-f", "-e", "trace=write"):
                harness.expect_ok(process.wait())
            if contents(sweep.directory) != whole:
                raise harness.Bad("the files differ from those of whole writes")
            writes = log.read_text().count("write(")
            if writes < 12:
                raise harness.Bad(f"only {writes} writes: they were not halved")
            tally.note(f"{writes} writes")
            size = harness.MODES[mode].size
            if halved.must("check", sweep.directory, *size) != "value 2":
                raise harness.Bad("short reads find another value")
            sweep.expect_good(new_only=True)
    return tally.report(at_least=len(modes))


def main(program, folder, what, argument, *modes):
    victims = harness.Victims(program)
    if what == "size":
        return sweep_size(victims, folder, argument)
    return halve_transfers(victims, program, folder, argument, modes)


if __name__ == "__main__":
    harness.run(main)
