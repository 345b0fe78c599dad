"""What the drivers of the fault tests share: victims, calls to stop them in, and the verdict.

    sweep = Sweep(Victims(program), MODES["restart"], folder)
    for call in sweep.calls():             # of a save that nothing disturbs
        sweep.strike(call, "signal=KILL")  # the same save, killed as it enters this call
        sweep.expect_good()                # what the next process finds
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# Nothing that a victim does takes a second, unless others keep the disk busy.
MOST_SECONDS = 60

# Calls after which the files are as before: to be stopped before the next call is the same.
CHANGES_NOTHING = {
    "access", "close", "faccessat", "faccessat2", "fadvise64", "fcntl", "fstat", "fstatfs",
    "getdents64", "ioctl", "lseek", "lstat", "mmap", "newfstatat", "pread64", "read", "readlink",
    "readlinkat", "stat", "statfs", "statx",
}

EXIT_OF_CODE = 100
CODES = {
    "INVALID_ARGUMENT": 3, "NOT_FOUND": 5, "PERMISSION_DENIED": 7, "RESOURCE_EXHAUSTED": 8,
    "FAILED_PRECONDITION": 9, "ABORTED": 10, "UNIMPLEMENTED": 12, "INTERNAL": 13, "DATA_LOSS": 15,
}


class Bad(Exception):
    """What the matrix forbids has happened."""


@dataclass
class Outcome:
    status: int | None  # an exit status; -9: SIGKILL ended it; None: it stopped once more
    text: str

    @property
    def code(self):
        """OK, the name of the error's code, or the status of another end."""
        names = {EXIT_OF_CODE + number: name for name, number in CODES.items()}
        return "OK" if self.status == 0 else names.get(self.status, str(self.status))


def last_words(pid):
    """Where a process hangs, for the report."""
    lines = [f"process {pid} did not end within {MOST_SECONDS} s"]
    for task in Path(f"/proc/{pid}/task").glob("*"):
        parts = [(task / name).read_text().strip() for name in ("comm", "wchan", "syscall")]
        lines.append(f"  thread {task.name}: " + ", ".join(parts))
    return "\n".join(lines)


class Process:
    """A victim that is ready for its save, and stopped."""

    def __init__(self, victims, pid, out):
        self._victims = victims
        self.pid = pid
        self._out = out

    def resume(self):
        try:
            os.kill(self.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it failed before it was ready
        return self

    def wait(self):
        kind, number = self._victims.ask(f"wait {self.pid}", self.pid).split()
        text = self._out.read_text(errors="backslashreplace").strip()
        if kind == "stopped":
            return Outcome(None, text)
        self._out.unlink()
        return Outcome(int(number) if kind == "exit" else -int(number), text)


class Victims:
    """`checkpoint_victim serve`, and the processes that it makes."""

    def __init__(self, program, environment=None):
        self._folder = tempfile.TemporaryDirectory(prefix="victims-")
        self._count = 0
        self._server = subprocess.Popen(
            [program, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            bufsize=1, env={**os.environ, **(environment or {})})

    def ask(self, request, pid=None):
        print(request, file=self._server.stdin)
        if not select.select([self._server.stdout], [], [], MOST_SECONDS)[0]:
            raise Bad(last_words(pid or self._server.pid))
        answer = self._server.stdout.readline().strip()
        if not answer:
            raise Bad(f"the victims' server died of '{request}'")
        return answer

    def start(self, *arguments):
        self._count += 1
        out = Path(self._folder.name) / str(self._count)
        words = " ".join(str(argument) for argument in arguments)
        return Process(self, int(self.ask(f"start {out} {words}")), out)

    def run(self, *arguments):
        return self.start(*arguments).resume().wait()

    def must(self, *arguments):
        """Runs what cannot go wrong; its last line."""
        return expect_ok(self.run(*arguments), " ".join(map(str, arguments)))


def expect_ok(outcome, what="an undisturbed save"):
    """The last line of the output."""
    if outcome.status != 0:
        raise Bad(f"{what} fails with {outcome.code}: {outcome.text}")
    return outcome.text.splitlines()[-1]


@dataclass(frozen=True)
class Mode:
    """A way of saving 2 into a directory whose latest checkpoint has the value `before`."""

    flags: tuple = ()
    before: int | None = 1
    before_flags: tuple = ()  # of the save of `before`
    folder: str = "dir"

    @property
    def size(self):
        return [flag for flag in self.flags if flag == "--big"]


MODES = {
    "first": Mode(before=None, folder="new/dir"),
    "restart": Mode(),
    "overwrite": Mode(("--overwrite",)),
    "manager": Mode(("--manager",), before_flags=("--manager",)),
    # These hold the directory already: all of the save's calls are those of the thread that saves.
    "async": Mode(("--again", "--async")),
    "big": Mode(("--again", "--big"), before_flags=("--big",)),
}


@dataclass(frozen=True)
class Call:
    """A system call of a save, on its directory: the `number`-th `name` of its thread."""

    name: str
    number: int
    main_thread: bool
    text: str = field(compare=False)

    def __str__(self):
        return f"{self.name} {self.number}: {self.text}"


_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)")


@contextmanager
def traced(process, log, *options):
    """The process runs on under strace, which is gone when the block ends."""
    strace = subprocess.Popen(
        ["strace", "-y", "-s", "80", "-o", str(log), *options, "-p", str(process.pid)],
        stderr=subprocess.PIPE, text=True)
    said = strace.stderr.readline()
    if "attached" not in said:
        raise Bad(f"strace cannot trace here: {said}{strace.stderr.read()}")
    process.resume()
    yield
    strace.communicate(timeout=MOST_SECONDS)


class Sweep:
    """One mode of saving, disturbed once a strike; each strike begins with the same files."""

    def __init__(self, victims, mode, folder):
        self._victims = victims
        self._mode = mode
        self._root = Path(folder)
        self._root.mkdir(parents=True, exist_ok=True)
        self._template = self._root / "template"
        self._work = self._root / "saves"
        self.directory = self._work / mode.folder
        self._template.mkdir()
        if mode.before is not None:
            victims.must("save", self._template / mode.folder, mode.before, *mode.before_flags)

    def reset(self):
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._template, self._work)

    def start(self, *flags, victims=None):
        """A save of 2 into fresh files, by the sweep's victims or by others."""
        self.reset()
        victims = victims or self._victims
        return victims.start("save", self.directory, 2, *self._mode.flags, *flags)

    def calls(self):
        """The system calls of an undisturbed save that have to do with its files."""
        log = self._root / "calls"
        process = self.start()
        with traced(process, log, "-f", "-e", "trace=%file,%desc"):
            expect_ok(process.wait())
        counts = Counter()
        calls = []
        for line in log.read_text().splitlines():
            match = _LINE.match(line)
            if not match:
                continue
            pid, name, rest = match.group("pid", "name", "rest")
            counts[pid, name] += 1
            if str(self._work) in rest and not rest.startswith("1<"):  # 1: what it reports
                text = rest.replace(str(self._root), "")
                calls.append(Call(name, counts[pid, name], int(pid) == process.pid, text))
        return calls

    def strike(self, call, effect):
        """Saves once more, with an effect of strace's (signal=KILL, error=EIO) at the call."""
        process = self.start()
        threads = [] if call.main_thread else ["-f"]
        log = self._root / "strike"
        with traced(process, log, *threads, "-e", f"trace={call.name}",
                    "-e", f"inject={call.name}:{effect}:when={call.number}"):
            outcome = process.wait()
        if "error=" in effect and "(INJECTED)" not in log.read_text():
            raise Bad(f"{call}: nothing was injected")
        return outcome

    def value(self, directory):
        """What a new process restores; None for no checkpoint."""
        found = self._victims.must("check", directory, *self._mode.size)
        return None if found == "none" else int(found.removeprefix("value "))

    def expect_good(self, directory=None, new_only=False):
        """The old checkpoint or the new one can be restored, and the next save works."""
        directory = directory or self.directory
        good = {2} if new_only else {self._mode.before, 2}
        value = self.value(directory)
        if value not in good:
            raise Bad(f"restored {value}, not one of {good}")
        self._victims.must("save", directory, 3, *self._mode.size)
        if (after := self.value(directory)) != 3:
            raise Bad(f"after another save the value is {after}, not 3")
        return value

    def expect_failure(self, outcome, codes, undo=lambda: None):
        """Of a save that failed, or that worked in spite of an error; `undo` mends what failed it.

        Says which it was.
        """
        if outcome.status == 0:
            undo()
            self.expect_good(new_only=True)
            return "saved"
        if outcome.code not in codes:
            raise Bad(f"ended with {outcome.code}: {outcome.text}")
        if self.directory.is_dir():
            left = [name for name in os.listdir(self.directory) if name.startswith(".cohort-tmp-")]
            if left:
                raise Bad(f"left {left}")
        undo()
        return "failed, new" if self.expect_good() == 2 else "failed, old"


class Tally:
    """How many strikes there were, how many ended well, and what was wrong with the others."""

    def __init__(self, title):
        self._title = title
        self._bad = []
        self._notes = Counter()
        self.tried = 0

    @contextmanager
    def strike(self, what):
        self.tried += 1
        try:
            yield
        except Bad as bad:
            self._bad.append(f"{what}: {bad}")

    def fail(self, what):
        self._bad.append(what)

    def note(self, text):
        self._notes[text] += 1

    def report(self, at_least=1):
        """Prints the figures; the process's exit status."""
        notes = ", ".join(f"{count} {text}" for text, count in sorted(self._notes.items()))
        good = self.tried - len(self._bad)
        print(f"{self._title}: {self.tried} tried, {good} good" + (f" ({notes})" if notes else ""))
        for bad in self._bad:
            print(f"  BAD {bad}")
        if self.tried < at_least:
            print(f"  BAD only {self.tried} tried, {at_least} or more expected")
        return 1 if self._bad or self.tried < at_least else 0


def command(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def in_own_mounts():
    """Goes on in a mount namespace of its own: what is mounted there ends with the process."""
    own, parents = (os.readlink(f"/proc/{pid}/ns/mnt") for pid in ("self", os.getppid()))
    if own == parents:
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private",
                              sys.executable, "-B", *sys.argv])


@contextmanager
def mounted(source, folder, *options):
    """`source`, an image, is mounted at `folder`; or a tmpfs, which has no source."""
    folder.mkdir(exist_ok=True)
    command("mount", *options, source, folder)
    try:
        yield folder
    finally:
        command("umount", "--lazy", folder)


def make_ext4(image, mebibytes, block_bytes=1024):
    with open(image, "wb") as file:
        file.truncate(mebibytes << 20)
    command("mkfs.ext4", "-q", "-b", block_bytes, "-m", 0, "-O", "^resize_inode",
            "-E", "lazy_itable_init=0,lazy_journal_init=0", image)


def run(main):
    """Runs a driver in a temporary folder: main(program, folder, *arguments)."""
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        status = main(sys.argv[1], Path(folder), *sys.argv[2:])
    sys.exit(status)
