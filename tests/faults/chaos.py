"""Row 54: jobs under `cohort launch --restarts` whose tasks are killed, stopped and ended at random, round after round.

The programs: chaos_of_workers.py and chaos_of_ps.py. A seed, which is printed, decides which faults come, how long
after the one before, and to whom.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUND_SECONDS = 240  # for a round that should take one minute: it hangs
GRACE_SECONDS = 2
NOTICED_SECONDS = 60  # a task that stands still is lost after 20 s, and killed


def is_stopped(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False  # it has ended meanwhile


class Job:
    """One run of a program under the launcher, with a log of its own."""

    def __init__(self, log, cohort, tasks, restarts, program):
        """tasks: the launcher's arguments that say which; program: its path and arguments."""
        self.log = log
        with log.open("wb") as out:
            self.launcher = subprocess.Popen(
                [cohort, "launch", *tasks, "--restarts", str(restarts), "--grace", str(GRACE_SECONDS), "--", *program],
                stdout=out, stderr=subprocess.STDOUT)
        self.ends_at = time.monotonic() + ROUND_SECONDS
        self.faults = []  # that were done to it, as words
        self.stopped_since = {}  # by process

    def runs(self):
        return self.launcher.poll() is None

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def restarts(self):
        return len(re.findall(r"restart \d+ of", self.output()))

    def processes(self):
        """Of the tasks that run now, by their names ("worker:0")."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                config = entry.joinpath("environ").read_bytes()
            except OSError:
                continue  # it has ended meanwhile
            task = re.search(rb'"type": ?"(\w+)", ?"index": ?(\d+)', config)
            if int(parent) == self.launcher.pid and task:
                found[f"{task[1].decode()}:{task[2].decode()}"] = int(entry.name)
        return found

    def send(self, task, number):
        """Whether there was such a task."""
        process = self.processes().get(task)
        if process is None:
            return False
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return False
        return True

    def pause(self, seconds):
        """Waits so long, or until the job has ended."""
        try:
            self.launcher.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def wait(self):
        """Its exit code. A job that hangs ends this program."""
        while self.runs():
            if time.monotonic() > self.ends_at:
                self.launcher.kill()
                sys.exit(f"a round did not end within {ROUND_SECONDS} s after {', '.join(self.faults) or 'nothing'}:"
                         f"\n{self.output()}")
            self.pause(1.0)
            self.wake_the_forgotten()
        return self.launcher.returncode

    def wake_the_forgotten(self):
        """Lets a task go on that was stopped for good where nobody notices: its peers have ended, or wait for it to
        come, for up to ten minutes."""
        now = time.monotonic()
        stopped = [process for process in self.processes().values() if is_stopped(process)]
        self.stopped_since = {process: self.stopped_since.get(process, now) for process in stopped}
        for process, since in self.stopped_since.items():
            if now - since > NOTICED_SECONDS:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)


# Faults: of a job and a source of chance they make words that say what was done, or something false where no task
# was there.


def send_to_one(number, verb, tasks):
    def fault(job, chance):
        task = chance.choice(tasks)
        return job.send(task, number) and f"{verb} {task}"
    return fault


def kill_all(tasks):
    def fault(job, _):
        sent = [job.send(task, signal.SIGKILL) for task in tasks]
        return any(sent) and "kill all"
    return fault


def stop_for_a_while(tasks, shortest, longest):
    def fault(job, chance):
        task = chance.choice(tasks)
        if not job.send(task, signal.SIGSTOP):
            return False
        seconds = chance.uniform(shortest, longest)
        job.pause(seconds)
        job.send(task, signal.SIGCONT)
        return f"stop {task} for {seconds:.1f} s"
    return fault


def disturb(job, chance, faults, most_faults, longest_delay):
    """Some faults, one after another."""
    for _ in range(chance.randint(1, most_faults)):
        (fault,) = chance.choices([fault for fault, _ in faults], [weight for _, weight in faults])
        job.pause(chance.uniform(0.1, longest_delay))
        words = job.runs() and fault(job, chance)
        if words:
            job.faults.append(words)


def run(make_start, faults, most_faults, longest_delay, option=""):
    """Rounds until the time that the command line gives is over.

    make_start: makes of (cohort, program, folder) a function that starts the job of a name, and one that takes the
    ended job and returns what came out, or ends this program. faults: each with how often it is chosen.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("cohort")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"row 54: seed {seed}; again: scripts/faults 54 --seconds {arguments.seconds:.0f} --seed {seed}{option}",
          flush=True)
    chance = random.Random(seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        start, check = make_start(arguments.cohort, arguments.program, Path(name))
        all_faults = rounds = 0
        while rounds == 0 or time.monotonic() - begin < arguments.seconds:
            began = time.monotonic()
            job = start(f"round-{rounds}")
            disturb(job, chance, faults, most_faults, longest_delay)
            outcome = check(job)
            print(f"round {rounds}: {', '.join(job.faults) or 'nothing came in time'}; {job.restarts()} restarts; "
                  f"{time.monotonic() - began:.0f} s; {outcome}", flush=True)
            all_faults += len(job.faults)
            rounds += 1
    print(f"row 54: {all_faults} faults in {rounds} rounds, {time.monotonic() - begin:.0f} s, always {outcome}")
