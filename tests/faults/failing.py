"""Rows 30 to 32: each system call of a save fails once, with each error that it may have.

failing.py VICTIM ERRNO|no-locks MODE...
"""

import harness

_RESOURCES = {"RESOURCE_EXHAUSTED"}
_DAMAGE = {"DATA_LOSS"}
_DENIED = {"PERMISSION_DENIED"}
_MAKES_NAMES = {"mkdir", "mkdirat", "rename", "renameat", "renameat2"}
_TAKES_SPACE = {"openat", "open", "write", "pwrite64", "fallocate", "fsync", "close"} | _MAKES_NAMES
_CHANGES = _TAKES_SPACE | {"ftruncate", "unlink", "unlinkat"}
_BIG = {"write", "pwrite64", "fallocate", "ftruncate"}
_LOOKS = {"access", "faccessat", "faccessat2", "fstat", "getdents64", "lstat", "newfstatat",
          "pread64", "stat", "statx"}
_WAITS = {"openat", "open", "write", "pwrite64", "pread64", "fallocate", "ftruncate", "fsync",
          "flock", "close"}


class Error:
    """Which calls can fail with an errno, and what class of error that makes."""

    def __init__(self, row, calls, codes):
        self.row = row
        self.calls = calls
        self.codes = codes


ERRORS = {
    "ENOSPC": Error(30, _TAKES_SPACE, _RESOURCES),
    "EDQUOT": Error(31, _TAKES_SPACE, _RESOURCES),
    "EFBIG": Error(31, _BIG, _RESOURCES),
    "EROFS": Error(31, _CHANGES - {"fsync", "close", "write"}, _DENIED),
    "EIO": Error(31, _CHANGES | _LOOKS | {"flock"}, _DAMAGE),
    "EINTR": Error(31, _WAITS, set()),
    "fsync": Error(32, {"fsync"}, _DAMAGE),
}


# How Lustre, NFS and others say that they have no locks; 524 is the kernel's ENOTSUPP.
NO_LOCKS = ("ENOLCK", "ENOSYS", "EOPNOTSUPP", "524")


def sweep_without_locks(victims, mode, folder):
    tally = harness.Tally(f"row 31, no locks, {mode}")
    for number in NO_LOCKS:
        sweep = harness.Sweep(victims, harness.MODES[mode], folder / number)
        for call in sweep.calls():
            if call.name == "flock":
                with tally.strike(f"{number} of {call}"):
                    outcome = sweep.strike(call, f"error={number}")
                    if outcome.status != 0:
                        raise harness.Bad(f"not saved: {outcome.text}")
                    tally.note(sweep.expect_failure(outcome, set()))
    return tally.report(at_least=len(NO_LOCKS))


def sweep_mode(victims, name, mode, folder):
    error = ERRORS[name]
    number = "EIO" if name == "fsync" else name
    tally = harness.Tally(f"row {error.row}, {name}, {mode}")
    sweep = harness.Sweep(victims, harness.MODES[mode], folder)
    for call in sweep.calls():
        if call.name in error.calls:
            with tally.strike(call):
                outcome = sweep.strike(call, f"error={number}")
                if name == "fsync" and outcome.status == 0:
                    raise harness.Bad("what could not be synced is said to be saved")
                tally.note(sweep.expect_failure(outcome, error.codes))
    return tally.report(at_least=4)


def main(program, folder, name, *modes):
    victims = harness.Victims(program)
    status = 0
    for mode in modes:
        if name == "no-locks":
            status |= sweep_without_locks(victims, mode, folder / mode)
        else:
            status |= sweep_mode(victims, name, mode, folder / mode)
    return status


if __name__ == "__main__":
    harness.run(main)
