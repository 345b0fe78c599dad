"""multi_worker.py COHORT PROGRAM EXPECTED.txt: the example multi_worker, with real processes.

Under `cohort launch`, by TF_CONFIG and alone it prints what guide 000 says that two workers read, and trains
to the same digest.
"""

import gzip
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT = 60


def write_images(folder):
    """Images that are brighter the higher their label is, as IDX files."""
    for name, count in (("train", 96), ("t10k", 32)):
        labels = bytes(i % 10 for i in range(count))
        images = bytes((25 * (i % 10) + pixel) % 256 for i in range(count) for pixel in range(784))
        with gzip.open(folder / f"{name}-labels-idx1-ubyte.gz", "wb") as out:
            out.write(struct.pack(">II", 0x801, count) + labels)
        with gzip.open(folder / f"{name}-images-idx3-ubyte.gz", "wb") as out:
            out.write(struct.pack(">IIII", 0x803, count, 28, 28) + images)


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def by_hand(program, arguments):
    """Two workers whose TF_CONFIG is set as people do.

    Each on a core of its own, as the launcher has them: the number of threads is in the bits.
    """
    cores = sorted(os.sched_getaffinity(0))
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for free in sockets:
        free.close()
    workers = []
    for index in range(2):
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        pinned = ["taskset", "--cpu-list", str(cores[index % len(cores)])]
        workers.append(subprocess.Popen([*pinned, program, *arguments], stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "TF_CONFIG": json.dumps(config)}))
    output = ""
    for worker in workers:
        output += worker.communicate(timeout=TIMEOUT)[0]
        if worker.returncode != 0:
            sys.exit(f"a worker ended with {worker.returncode}")
    return output


def digests(output):
    return re.findall(r"digest: ([0-9a-f]{16})$", output, re.MULTILINE)


def check_elastic(cohort, program, folder):
    """Replicas that workers host: the digest depends neither on their number nor on changes of it."""
    arguments = ["--data", folder, "--global-batch", "32", "--elastic", "6"]

    def train(workers, epochs, *more):
        launch = [cohort, "launch", "--workers", str(workers), "--"] if workers > 1 else []
        return run([*launch, program, *arguments, "--epochs", str(epochs), *more])

    undisturbed = digests(train(1, 3))
    for workers in (2, 3, 4):
        found = digests(train(workers, 3))
        if found != undisturbed * workers:
            sys.exit(f"6 replicas on {workers} workers: {found}, on one: {undisturbed}")
    checkpoints = ["--checkpoints", f"{folder}/elastic"]
    train(3, 1, *checkpoints)
    train(1, 2, *checkpoints)
    output = train(2, 3, *checkpoints)
    if "Restored" not in output or digests(output) != undisturbed * 2:
        sys.exit(f"on 3 workers, then 1, then 2: {output}, undisturbed: {undisturbed}")


def main(cohort, program, expected_path):
    two_workers = [cohort, "launch", "--workers", "2", "--", program]
    wanted = [line for line in Path(expected_path).read_text(encoding="utf-8").splitlines()
              if "2 workers of 1 replica" in line]
    lines = [re.sub(r"^\[worker:\d\] ", "", line)
             for line in run([*two_workers, "--input"]).splitlines()]
    if sorted(set(lines)) != sorted(wanted):
        sys.exit("the workers read\n" + "\n".join(lines))

    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        arguments = ["--data", folder, "--epochs", "1", "--global-batch", "32"]
        launched = digests(run([*two_workers, *arguments, "--checkpoints", f"{folder}/ckpt"]))
        hand = digests(by_hand(program, arguments))
        alone = digests(run([program, *arguments, "--replicas", "2"]))
        if len(launched) != 2 or len(hand) != 2 or len({*launched, *hand, *alone}) != 1:
            sys.exit(f"digests differ: {launched}, {hand}, {alone}")
        again = run([*two_workers, *arguments, "--checkpoints", f"{folder}/ckpt"])
        if "Restored" not in again or digests(again) != launched:
            sys.exit(f"from its checkpoint it goes on to\n{again}")
        check_elastic(cohort, program, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
