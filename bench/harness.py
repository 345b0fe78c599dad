"""What the benchmarks share: programs that take turns, and what their figures come to.

A side of a comparison is a Worker: a program that reads a command a line and answers each with a
line. It is stopped between its turns, so that no thread of it spins while others are measured.
"""

import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent

# What config::keep_freed_memory sets, for the peers too.
KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(32 << 20),
                     "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
                     "MALLOC_TOP_PAD_": str(64 << 20)}
# Exit codes of sysexits.h: a failed run, and one to try again later.
EX_SOFTWARE, EX_TEMPFAIL = 70, 75
# A candidate this much slower than the best in its first turn is out.
NEAR = 0.75
# Debian's interpreter: it has Debian's PyTorch.
DEBIAN_PYTHON = "/usr/bin/python3"


def refuse(why):
    """Ends a benchmark whose figures would mean nothing on a machine as busy as this."""
    print(f"nothing is reported: {why}", flush=True)
    sys.exit(EX_TEMPFAIL)


def tensorflow_python():
    """The interpreter of the interop tests' environment, which is made where it is missing."""
    done = subprocess.run([BENCH.parent / "scripts" / "interop", "--environment"],
                          stdout=subprocess.PIPE, text=True, check=True)
    return f"{done.stdout.strip()}/bin/python"


def peak_memory(group):
    """{"ps 0": MiB}: the most that each task of a cluster (by TF_CONFIG) in this process group has had in
    memory so far."""
    peaks = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if os.getpgid(int(process.name)) != group:
                continue
            environment = dict(entry.split("=", 1)
                               for entry in (process / "environ").read_text().split("\0")
                               if "=" in entry)
            status = dict(line.split(":", 1)
                          for line in (process / "status").read_text().splitlines())
            if "TF_CONFIG" not in environment or "VmHWM" not in status:
                continue
            task = json.loads(environment["TF_CONFIG"])["task"]
            peaks[f"{task['type']} {task['index']}"] = int(status["VmHWM"].split()[0]) / 1024
    return dict(sorted(peaks.items()))


class Worker:
    """A program that carries out a command a line and answers with a line.

    pauses: whether it is stopped between its turns. Tasks that watch each other would take the pause
    for a loss; they must sleep by themselves while they wait for a command.
    """

    def __init__(self, *command, environment=None, pauses=True):
        self.pauses = pauses
        self.name = " ".join(map(str, command))
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True,
            # A group of its own, to be stopped with its children. Not a session: where this program
            # is killed, the system ends stopped groups of the same session.
            process_group=0,
            env={**os.environ, "PYTHONPATH": str(BENCH), "PYTHONDONTWRITEBYTECODE": "1",
                 **(environment or {})})

    def ask(self, command):
        """The answer to a command; the program runs for that long and no longer."""
        self.start(command)
        return self.finish()

    def start(self, command):
        self._signal(signal.SIGCONT)
        self.command = command
        with contextlib.suppress(BrokenPipeError):  # finish finds that it has ended
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()

    def finish(self):
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            print(f"'{self.command}' ended '{self.name}' with {self.process.wait()}",
                  file=sys.stderr)
            sys.exit(EX_SOFTWARE)
        if self.pauses:
            self._signal(signal.SIGSTOP)
        return line.strip()

    def __call__(self, command):
        return float(self.ask(command))

    def _signal(self, number):
        # Its children are in its process group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


class Side:
    """One way to do the work. Of its candidates, (label, worker, command), the best takes part.

    Workers answer "COMMAND SECONDS"; figure(answer) is what is compared, and higher is better. name:
    its short one, where its work measures its rounds by itself.
    """

    def __init__(self, title, candidates, figure=lambda answer: answer, name=None):
        self.title = title
        self.name = name
        self.candidates = candidates
        self.figure = figure
        self.chosen = candidates[0]

    def choose(self, seconds, times):
        """Lets the candidates take turns, and keeps the one with the best median. Those far behind
        after the first turn take no others."""
        if len(self.candidates) == 1:
            return
        turns = {label: lambda one=(label, *rest): self._figure(one, seconds)
                 for label, *rest in self.candidates}
        first = alternate(turns, 1)
        least = NEAR * max(first[0].values())
        near = {label: turn for label, turn in turns.items() if first[0][label] >= least}
        more = alternate(near, times - 1) if len(near) > 1 else []
        median = medians([{label: first[0][label] for label in near}, *more])
        # The others do not take part again either, where the work is measured again.
        self.candidates = [one for one in self.candidates if one[0] in near]
        self.chosen = max(self.candidates, key=lambda candidate: median[candidate[0]])

    def turn(self, seconds):
        """Its figure, from a turn of about so many seconds."""
        return self._figure(self.chosen, seconds)

    def first_loss(self):
        """Of what it trains: the mean over its first steps."""
        _, worker, command = self.chosen
        return worker(f"loss {command}")

    def full_title(self):
        label = self.chosen[0]
        return f"{self.title} [{label}]" if label else self.title

    def _figure(self, candidate, seconds):
        _, worker, command = candidate
        return self.figure(worker(f"{command} {seconds}"))


def alternate(turns, rounds):
    """Calls every turn {name: function} once a round, every other round in reverse order, so that
    nobody always follows the same neighbour. Returns [{name: result}]."""
    names = list(turns)
    results = []
    for number in range(rounds):
        order = names if number % 2 == 0 else names[::-1]
        one = {name: turns[name]() for name in order}
        results.append({name: one[name] for name in names})
    return results


def medians(rounds):
    """{name: median over the rounds that have it}."""
    names = dict.fromkeys(name for one in rounds for name in one)
    return {name: statistics.median(one[name] for one in rounds if name in one) for name in names}


def ratio(rounds, name, other):
    """The median of name's figure over other's within each round: drift of the machine cancels."""
    return statistics.median(one[name] / one[other] for one in rounds)
