"""chaos_of_ps.py COHORT PROGRAM [--seconds N] [--seed S]: parameter servers that lose tasks again and again.

Counts with tests/cluster/parameter_server_counting.h under `cohort launch --ps --restarts`, round after round, and
meanwhile kills, stops and ends its tasks at random: workers, ps tasks and the chief. Each round has to end with
counters that are exact on all ps tasks; the program itself checks that they agree in every checkpoint. The seed
decides which faults come, how long after the one before, and to whom; it is printed.
"""

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import chaos

WORKERS = 3
SERVERS = 2
TOTAL = 6000  # closures of a round
MOST_FAULTS = 5
GRACE_SECONDS = 2
EVERY_TASK = ["chief:0"] + [f"worker:{i}" for i in range(WORKERS)] + [f"ps:{i}" for i in range(SERVERS)]


class Job(chaos.Job):
    """One count under the launcher."""

    def __init__(self, cohort, program, folder, name):  # pylint: disable=super-init-not-called
        directory = folder / name
        directory.mkdir()
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as out:
            self.launcher = subprocess.Popen(
                [cohort, "launch", "--workers", str(WORKERS), "--ps", str(SERVERS),
                 "--restarts", str(4 * MOST_FAULTS), "--grace", str(GRACE_SECONDS), "--", program,
                 directory, str(TOTAL)],
                stdout=out, stderr=subprocess.STDOUT)
        self.ends_at = time.monotonic() + chaos.ROUND_SECONDS

    def workers(self):
        """The processes of all tasks that run now, by their names."""
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

    def finish(self):
        """Returns once the counters are exact, or ends this program."""
        try:
            code = self.launcher.wait(max(0.0, self.ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.launcher.kill()
            sys.exit(f"a round did not end within {chaos.ROUND_SECONDS} s:\n{self.output()}")
        counters = re.findall(r"counters: (\d+ \d+)$", self.output(), re.MULTILINE)
        if code != 0 or counters != [f"{TOTAL} {TOTAL}"]:
            sys.exit(f"a round ended with {code} and the counters {counters}:\n{self.output()}")


def any_of(job_name, chance):
    return chance.choice([task for task in EVERY_TASK if task.startswith(job_name)])


def kill(of_job):
    def fault(job, chance):
        task = any_of(of_job, chance)
        return job.send(task, signal.SIGKILL) and f"kill {task}"
    return fault


def kill_all_workers(job, _):
    sent = [job.send(f"worker:{i}", signal.SIGKILL) for i in range(WORKERS)]
    return any(sent) and "kill all workers"


def terminate_worker(job, chance):
    task = any_of("worker", chance)
    return job.send(task, signal.SIGTERM) and f"terminate {task}"


def stop_for_a_while(job, chance):
    """Shorter than what makes a task lost."""
    task = chance.choice(EVERY_TASK)
    if not job.send(task, signal.SIGSTOP):
        return False
    chaos.pause(job, chance.uniform(0.1, 1.0))
    job.send(task, signal.SIGCONT)
    return f"stop {task} for a moment"


def make_zombie(job, chance):
    """A worker that is taken for lost, and goes on."""
    task = any_of("worker", chance)
    if not job.send(task, signal.SIGSTOP):
        return False
    chaos.pause(job, chance.uniform(3.0, 5.0))
    job.send(task, signal.SIGCONT)
    return f"zombie {task}"


# Each with how often it is chosen.
FAULTS = ((kill("worker"), 6), (kill("ps"), 3), (kill("chief"), 3), (kill_all_workers, 2), (terminate_worker, 2),
          (stop_for_a_while, 4), (make_zombie, 2))


def disturb(job, chance):
    """The faults of a round, as words."""
    done = []
    for _ in range(chance.randint(1, MOST_FAULTS)):
        (fault,) = chance.choices([fault for fault, _ in FAULTS], [weight for _, weight in FAULTS])
        delay = chance.uniform(0.1, 5.0)
        chaos.pause(job, delay)
        words = job.runs() and fault(job, chance)
        if words:
            done.append(words)
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cohort")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"row 54: seed {seed}; again: scripts/faults 54 --seconds {arguments.seconds:.0f} --seed {seed} --ps",
          flush=True)
    chance = random.Random(seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        faults = rounds = 0
        while rounds == 0 or time.monotonic() - begin < arguments.seconds:
            began = time.monotonic()
            job = Job(arguments.cohort, arguments.program, folder, f"round-{rounds}")
            done = disturb(job, chance)
            job.finish()
            restarts = len(re.findall(r"restart \d+ of", job.output()))
            print(f"round {rounds}: {', '.join(done) or 'nothing came in time'}; {restarts} restarts; "
                  f"{time.monotonic() - began:.0f} s", flush=True)
            faults += len(done)
            rounds += 1
    print(f"row 54: {faults} faults in {rounds} rounds, {time.monotonic() - begin:.0f} s, "
          f"the counters always exact")


if __name__ == "__main__":
    main()
