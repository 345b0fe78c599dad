"""Rows 30 to 32 on file systems that really fail: with each small amount of room, read-only, with
a disk below that takes no more writes. Needs root.

full_disk.py VICTIM space|inodes|ext4|big|read-only|broken
"""

import os

import harness

_FULL = {"RESOURCE_EXHAUSTED"}
_MODES = ("first", "restart", "overwrite", "manager", "async")


def room(folder):
    """Free bytes."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


class Filler:
    """A file, or many, that leave only so much room."""

    def __init__(self, mount):
        self._mount = mount
        self._path = mount / "filler"

    def leave_bytes(self, free):
        with open(self._path, "wb") as file:
            if (size := room(self._mount) - free) > 0:
                os.posix_fallocate(file.fileno(), 0, size)
        harness.command("sync", "--file-system", self._mount)

    def leave_inodes(self, free):
        self._path.mkdir()
        for number in range(os.statvfs(self._mount).f_ffree - free):
            (self._path / str(number)).touch()

    def remove(self):
        harness.command("rm", "-rf", self._path)


def sweep_room(victims, name, mount, amounts, fill):
    """Saves with each of these amounts of room, the least first, until one that suffices."""
    tally = harness.Tally(f"row 30, {mount.name}, {name}")
    sweep = harness.Sweep(victims, harness.MODES[name], mount / "sweep")
    filler = Filler(mount)
    worked = False
    for amount in amounts:
        with tally.strike(f"room for {amount}"):
            process = sweep.start()
            fill(filler, amount)
            outcome = process.resume().wait()
            note = sweep.expect_failure(outcome, _FULL, undo=filler.remove)
            tally.note(note)
            worked = note == "saved"
        filler.remove()
        if worked:
            break
    if not worked:
        tally.fail("no amount of room sufficed")
    return tally.report(at_least=2)


def sweep_space(victims, folder):
    status = 0
    for mode in _MODES:
        options = ("-t", "tmpfs", "-o", "size=64k")
        with harness.mounted("none", folder / f"tmpfs-{mode}", *options) as mount:
            status |= sweep_room(victims, mode, mount, range(0, 1 << 16, 4096), Filler.leave_bytes)
    return status


def sweep_inodes(victims, folder):
    status = 0
    for mode in _MODES:
        options = ("-t", "tmpfs", "-o", "size=1m,nr_inodes=64")
        with harness.mounted("none", folder / f"tmpfs-inodes-{mode}", *options) as mount:
            status |= sweep_room(victims, mode, mount, range(12), Filler.leave_inodes)
    return status


def sweep_ext4(victims, folder):
    status = 0
    for mode in _MODES:
        image = folder / f"{mode}.image"
        harness.make_ext4(image, mebibytes=8)
        with harness.mounted(image, folder / f"ext4-{mode}", "-o", "loop") as mount:
            status |= sweep_room(victims, mode, mount, range(0, 1 << 16, 1024), Filler.leave_bytes)
    return status


def sweep_big(victims, folder):
    """A checkpoint of 36 MB, written past the page cache."""
    image = folder / "image"
    harness.make_ext4(image, mebibytes=256, block_bytes=4096)
    with harness.mounted(image, folder / "ext4", "-o", "loop") as mount:
        amounts = [mebibytes << 20 for mebibytes in (0, 1, 8, 30, 34, 40)]
        return sweep_room(victims, "big", mount, amounts, Filler.leave_bytes)


def save_read_only(victims, folder):
    tally = harness.Tally("row 31, mounted read-only")
    image = folder / "image"
    harness.make_ext4(image, mebibytes=8)
    with harness.mounted(image, folder / "read-only", "-o", "loop") as mount:
        for mode in ("restart", "overwrite", "manager"):
            with tally.strike(mode):
                sweep = harness.Sweep(victims, harness.MODES[mode], mount / mode)
                process = sweep.start()
                harness.command("mount", "-o", "remount,ro", mount)
                outcome = process.resume().wait()
                writable = ("mount", "-o", "remount,rw", mount)
                if outcome.status == 0:
                    raise harness.Bad("a save onto a read-only disk is said to have worked")
                tally.note(sweep.expect_failure(
                    outcome, {"PERMISSION_DENIED"}, undo=lambda: harness.command(*writable)))
    return tally.report(at_least=3)


def save_on_broken_disk(victims, folder):
    """The image lies on a full tmpfs: ext4 takes the write, its device fails to."""
    tally = harness.Tally("row 32, a device that fails while the save is synced")
    options = ("-t", "tmpfs", "-o", "size=12m")
    with harness.mounted("none", folder / "below", *options) as below:
        harness.make_ext4(below / "image", mebibytes=32)
        with harness.mounted(below / "image", folder / "above", "-o", "loop") as mount:
            sweep = harness.Sweep(victims, harness.MODES["restart"], mount / "sweep")
            process = sweep.start()
            harness.command("sync", "--file-system", mount)
            Filler(below).leave_bytes(0)
            outcome = process.resume().wait()
        Filler(below).remove()
        with harness.mounted(below / "image", folder / "repaired", "-o", "loop") as mount:
            with tally.strike("save"):
                if outcome.code not in ("DATA_LOSS", "RESOURCE_EXHAUSTED"):
                    raise harness.Bad(f"ended with {outcome.code}: {outcome.text}")
                tally.note(f"failed, {outcome.text.split(':')[0]}")
                sweep.expect_good(mount / "sweep" / "saves" / "dir")
    return tally.report()


def main(program, folder, what):
    victims = harness.Victims(program)
    return {
        "space": sweep_space, "inodes": sweep_inodes, "ext4": sweep_ext4, "big": sweep_big,
        "read-only": save_read_only, "broken": save_on_broken_disk,
    }[what](victims, folder)


if __name__ == "__main__":
    harness.in_own_mounts()
    harness.run(main)
