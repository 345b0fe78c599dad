"""Row 34: the power goes as a save enters each of its system calls, and after it has returned.

The disk is an ext4 image that writes nothing back by itself for five minutes. A copy of the image,
made while it is mounted, is what a disk holds after a power cut. Needs root.

power_cut.py VICTIM MODE...
"""

import harness

_OPTIONS = ("-o", "loop,commit=300,noauto_da_alloc")


class Disk:
    """The sweep's disk, and what a power cut leaves of it."""

    def __init__(self, image, folder):
        self._image = image
        self._copy = image.with_suffix(".copy")
        self._folder = folder

    def settle(self):
        harness.command("sync", "--file-system", self._folder)

    def expect_good(self, sweep, new_only=False):
        harness.command("cp", "--sparse=always", self._image, self._copy)
        after = self._folder.with_suffix(".after")
        with harness.mounted(self._copy, after, *_OPTIONS):
            directory = after / sweep.directory.relative_to(self._folder)
            return sweep.expect_good(directory, new_only)


class SettledSweep(harness.Sweep):
    """What a strike begins with is on the disk."""

    def __init__(self, victims, mode, disk, folder):
        super().__init__(victims, mode, folder)
        self._disk = disk

    def reset(self):
        super().reset()
        self._disk.settle()


def expect_loss(sweep, disk, log):
    """The control: a save whose syncs do nothing must not survive, or this test finds nothing."""
    process = sweep.start()
    with harness.traced(process, log, "-f", "-e", "trace=fsync", "-e", "inject=fsync:retval=0"):
        harness.expect_ok(process.wait())
    try:
        disk.expect_good(sweep, new_only=True)
    except harness.Bad:
        return
    raise harness.Bad("the control's save survived the power cut without a sync")


def sweep_mode(victims, name, folder):
    image = folder / "image"
    harness.make_ext4(image, mebibytes=256 if name == "big" else 16)
    tally = harness.Tally(f"row 34, power cut, {name}")
    with harness.mounted(image, folder / "disk", *_OPTIONS) as mount:
        disk = Disk(image, mount)
        sweep = SettledSweep(victims, harness.MODES[name], disk, mount / "sweep")
        with tally.strike("control"):
            expect_loss(sweep, disk, folder / "control")
        for call in sweep.calls():
            if call.name in harness.CHANGES_NOTHING:
                continue
            with tally.strike(call):
                sweep.strike(call, "signal=KILL")
                tally.note("new" if disk.expect_good(sweep) == 2 else "old")
        with tally.strike("after the save"):
            harness.expect_ok(sweep.start().resume().wait())
            disk.expect_good(sweep, new_only=True)
            tally.note("new")
    return tally.report(at_least=10)


def main(program, folder, *modes):
    victims = harness.Victims(program)
    status = 0
    for mode in modes:
        (folder / mode).mkdir()
        status |= sweep_mode(victims, mode, folder / mode)
    return status


if __name__ == "__main__":
    harness.in_own_mounts()
    harness.run(main)
