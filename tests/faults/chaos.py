"""chaos.py COHORT PROGRAM [--seconds N] [--seed S]: workers in step that lose each other again and again.

Trains the example multi_worker under `cohort launch --restarts`, round after round, and meanwhile kills, stops and
ends its workers at random. Each round has to end with the digest of a training that nobody disturbed. The seed
decides which faults come, how long after the one before, and to whom; it is printed.
"""

import argparse
import os
import random
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKERS = 2
EPOCHS = 8
MOST_FAULTS = 4  # of a round: the launcher waits twice as long after each
ROUND_SECONDS = 240  # for a round that should take one minute: it hangs
GRACE_SECONDS = 2


def write_images(folder):
    """Images that are brighter the higher their label is, as IDX files."""
    for name, count in (("train", 512), ("t10k", 64)):
        labels = bytes(i % 10 for i in range(count))
        images = b"".join(bytes((25 * (i % 10) + pixel) % 256 for pixel in range(784)) for i in range(count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + images)


class Job:
    """One training under the launcher."""

    def __init__(self, cohort, program, folder, name):
        self.checkpoints = folder / name
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as out:
            self.launcher = subprocess.Popen(
                [cohort, "launch", "--workers", str(WORKERS), "--restarts", str(2 * MOST_FAULTS),
                 "--grace", str(GRACE_SECONDS), "--", program, "--data", folder / "images",
                 "--epochs", str(EPOCHS), "--global-batch", "64", "--checkpoints", self.checkpoints],
                stdout=out, stderr=subprocess.STDOUT)
        self.ends_at = time.monotonic() + ROUND_SECONDS

    def runs(self):
        return self.launcher.poll() is None

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def workers(self):
        """The processes of the workers that run now, by their number."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[1]
                config = entry.joinpath("environ").read_bytes()
            except OSError:
                continue  # it has ended meanwhile
            index = re.search(rb'"index": ?(\d+)', config)
            if int(parent) == self.launcher.pid and index:
                found[int(index[1])] = int(entry.name)
        return found

    def send(self, worker, number):
        """Whether there was such a worker."""
        process = self.workers().get(worker)
        if process is None:
            return False
        try:
            os.kill(process, number)
        except ProcessLookupError:
            return False
        return True

    def finish(self):
        """The digest of all workers, or the end of this program."""
        try:
            code = self.launcher.wait(max(0.0, self.ends_at - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.launcher.kill()
            sys.exit(f"a round did not end within {ROUND_SECONDS} s:\n{self.output()}")
        digests = re.findall(r"digest: ([0-9a-f]{16})$", self.output(), re.MULTILINE)
        if code != 0 or len(digests) < WORKERS or len(set(digests)) != 1:
            sys.exit(f"a round ended with {code} and the digests {digests}:\n{self.output()}")
        return digests[0]


def pause(job, seconds):
    """Waits so long, or until the job has ended."""
    try:
        job.launcher.wait(seconds)
    except subprocess.TimeoutExpired:
        pass


def kill(job, worker, _):
    return job.send(worker, signal.SIGKILL)


def kill_all(job, _, __):
    return any([job.send(worker, signal.SIGKILL) for worker in range(WORKERS)])


def terminate(job, worker, _):
    return job.send(worker, signal.SIGTERM)


def stop_for_a_while(job, worker, chance):
    """Shorter than what makes a worker lost."""
    if not job.send(worker, signal.SIGSTOP):
        return False
    pause(job, chance.uniform(0.1, 2.0))
    job.send(worker, signal.SIGCONT)
    return True


def stop_for_good(job, worker, _):
    return job.send(worker, signal.SIGSTOP)


# Each with how often it is chosen: the last costs 20 s, the time after which a silent worker is lost.
FAULTS = ((kill, 6), (kill_all, 2), (terminate, 2), (stop_for_a_while, 4), (stop_for_good, 1))


def disturb(job, chance):
    """The faults of a round, as words."""
    done = []
    for _ in range(chance.randint(1, MOST_FAULTS)):
        (fault,) = chance.choices([fault for fault, _ in FAULTS], [weight for _, weight in FAULTS])
        worker = chance.randrange(WORKERS)
        delay = chance.uniform(0.1, 6.0)
        pause(job, delay)
        if job.runs() and fault(job, worker, chance):
            done.append(f"{fault.__name__} {worker}")
    return done


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cohort")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"row 54: seed {seed}; again: scripts/faults 54 --seconds {arguments.seconds:.0f} --seed {seed}",
          flush=True)
    chance = random.Random(seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "images").mkdir()
        write_images(folder / "images")
        calm = Job(arguments.cohort, arguments.program, folder, "calm").finish()
        faults = rounds = 0
        while rounds == 0 or time.monotonic() - begin < arguments.seconds:
            job = Job(arguments.cohort, arguments.program, folder, f"round-{rounds}")
            done = disturb(job, chance)
            digest = job.finish()
            restarts = len(re.findall(r"restart \d+ of", job.output()))
            print(f"round {rounds}: {', '.join(done) or 'nothing came in time'}; {restarts} restarts; {digest}",
                  flush=True)
            if digest != calm:
                sys.exit(f"undisturbed it is {calm}:\n{job.output()}")
            faults += len(done)
            rounds += 1
    print(f"row 54: {faults} faults in {rounds} rounds, {time.monotonic() - begin:.0f} s, "
          f"always the digest {calm}")


if __name__ == "__main__":
    main()
