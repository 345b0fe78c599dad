"""Rows 12 to 16: workers of an elastic strategy are killed, and others come in their places.

elastic.py JOB [--runs N] [--workers N] [--seed S] [--returns] [--pause-ms MS] [--epochs N]
"""

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TIMEOUT = 180


def free_addresses(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for one in sockets:
        one.close()
    return addresses


class Cluster:
    """The processes of a job, one for each of its places."""

    def __init__(self, job, workers, arguments, folder):
        self.command = [job, *arguments]
        self.addresses = free_addresses(workers)
        self.folder = folder
        self.processes = {}
        self.logs = {}
        self.starts = 0
        for index in range(workers):
            self.start(index)

    def start(self, index):
        config = {"cluster": {"worker": self.addresses}, "task": {"type": "worker", "index": index}}
        log = self.folder / f"worker-{index}-{self.starts}.log"
        self.starts += 1
        with log.open("wb") as out:
            self.processes[index] = subprocess.Popen(self.command, stdout=out, stderr=subprocess.STDOUT,
                                                     env={**os.environ, "TF_CONFIG": json.dumps(config)})
        self.logs[index] = log

    def is_return(self, index):
        return int(self.logs[index].stem.rpartition("-")[2]) >= len(self.addresses)

    def alive(self):
        return [index for index, process in self.processes.items() if process.poll() is None]

    def kill(self, index):
        self.processes[index].send_signal(signal.SIGKILL)
        self.processes[index].wait()

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()

    def text(self):
        return "\n".join(f"== {log.name}\n{log.read_text(errors='replace')}" for log in sorted(self.folder.iterdir())
                         if log.suffix == ".log")


def wait_for_first_epoch(cluster, deadline):
    while time.monotonic() < deadline:
        if any(re.search("epoch 1|Epoch 2", log.read_text(errors="replace")) for log in cluster.logs.values()):
            return
        if not cluster.alive():
            break
        time.sleep(0.01)
    raise RuntimeError("no epoch has ended")


def digests(cluster):
    deadline = time.monotonic() + TIMEOUT
    found = {}
    for index, process in cluster.processes.items():
        status = process.wait(timeout=max(1, deadline - time.monotonic()))
        if status == -signal.SIGKILL:
            continue
        text = cluster.logs[index].read_text(errors="replace")
        has_come = cluster.is_return(index)
        if has_come and ("nothing was left to train" in text or (status > 0 and "digest" not in text)):
            continue  # it came when the others were about to end
        digest = re.search(r"digest (\w+) steps (\d+)", text)
        if status != 0 or digest is None:
            raise RuntimeError(f"worker {index} ended with {status}")
        if "ROWS NOT ONCE" in text:
            raise RuntimeError(f"worker {index} has not seen each row once")
        found[index] = digest.group(0)
    return found


def pause_around(killed, folder):
    """How long nobody ended a step, from the kill on: until the next step, or a longer gap after it."""
    ends = sorted({float(line) for log in folder.iterdir() for line in log.read_text().split()[:-1]})
    after = [end for end in ends if killed < end < killed + 2]
    gaps = [late - early for early, late in zip([killed, *after], after)]
    return round(max(gaps), 3) if gaps else None  # the job had ended


def run(options, seed, kills):
    """The digest of a run with so many kills, and for each how long nobody ended a step."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        arguments = ["--pause-ms", str(options.pause_ms), "--epochs", str(options.epochs)]
        if options.fit:
            arguments.append("--fit")
        if options.returns:
            arguments += ["--checkpoints", str(folder / "checkpoints")]
        times = folder / "times"
        times.mkdir()
        arguments += ["--times", str(times)]
        cluster = Cluster(options.job, options.workers, arguments, folder)
        killed_at = []
        try:
            if kills:
                wait_for_first_epoch(cluster, time.monotonic() + TIMEOUT)
            for _ in range(kills):
                time.sleep(chance.uniform(0.05, 0.5))
                alive = cluster.alive()
                if len(alive) < 2:
                    break
                victim = chance.choice(alive if options.any else alive[1:])
                killed_at.append(time.monotonic())
                cluster.kill(victim)
                if options.returns:
                    time.sleep(chance.uniform(0, 1))
                    cluster.start(victim)
            found = digests(cluster)
            pauses = [pause_around(moment, times) for moment in killed_at]
            pauses = [pause for pause in pauses if pause is not None]
        except Exception:
            print(cluster.text(), file=sys.stderr)
            raise
        finally:
            cluster.end()
    if len(set(found.values())) != 1:
        raise RuntimeError(f"workers end with different digests: {found}")
    return found.popitem()[1], pauses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause-ms", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--returns", action="store_true")
    parser.add_argument("--fit", action="store_true", help="trains by fit")
    parser.add_argument("--any", action="store_true", help="kills the first worker, too")
    options = parser.parse_args()
    undisturbed, _ = run(options, 0, 0)
    print("undisturbed:", undisturbed, flush=True)
    pauses = []
    for number in range(options.runs):
        digest, own = run(options, options.seed + number, options.kills)
        pauses += own
        print(f"run {number}: {digest}, pauses {own}", flush=True)
        if digest != undisturbed:
            sys.exit(f"run {number} (seed {options.seed + number}) ends with {digest}, not {undisturbed}")
    pauses.sort()
    if pauses:
        at = lambda share: pauses[min(len(pauses) - 1, int(share * len(pauses)))]
        print(f"from a kill to the next step: p50 {at(0.5):.3f} s, p90 {at(0.9):.3f} s, p99 {at(0.99):.3f} s, "
              f"most {pauses[-1]:.3f} s, of {len(pauses)} kills")


if __name__ == "__main__":
    main()
