"""chaos_of_workers.py COHORT PROGRAM [--seconds N] [--seed S]: workers in step that lose each other again and again.

Trains the example multi_worker. Each round has to end with the digest of a training that nobody disturbed.
"""

import re
import signal
import struct
import sys

import chaos

TASKS = ["worker:0", "worker:1"]
EPOCHS = 8
MOST_FAULTS = 4  # of a round: the launcher waits twice as long after each

# The last costs 20 s, the time after which a silent worker is lost; the one before is shorter than that.
FAULTS = ((chaos.send_to_one(signal.SIGKILL, "kill", TASKS), 6), (chaos.kill_all(TASKS), 2),
          (chaos.send_to_one(signal.SIGTERM, "terminate", TASKS), 2), (chaos.stop_for_a_while(TASKS, 0.1, 2.0), 4),
          (chaos.send_to_one(signal.SIGSTOP, "stop for good", TASKS), 1))


def write_images(folder):
    """Images that are brighter the higher their label is, as IDX files."""
    for name, count in (("train", 512), ("t10k", 64)):
        labels = bytes(i % 10 for i in range(count))
        images = b"".join(bytes((25 * (i % 10) + pixel) % 256 for pixel in range(784)) for i in range(count))
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, count, 28, 28) + images)


def digest_of(job):
    code = job.wait()
    digests = re.findall(r"digest: ([0-9a-f]{16})$", job.output(), re.MULTILINE)
    if code != 0 or len(digests) < len(TASKS) or len(set(digests)) != 1:
        sys.exit(f"a round ended with {code} and the digests {digests}:\n{job.output()}")
    return digests[0]


def make_start(cohort, program, folder):
    images = folder / "images"
    images.mkdir()
    write_images(images)

    def start(name):
        return chaos.Job(folder / f"{name}.log", cohort, ["--workers", str(len(TASKS))], 2 * MOST_FAULTS,
                         [program, "--data", images, "--epochs", str(EPOCHS), "--global-batch", "64",
                          "--checkpoints", folder / name])

    calm = digest_of(start("calm"))

    def check(job):
        digest = digest_of(job)
        if digest != calm:
            sys.exit(f"undisturbed it is {calm}, not {digest}:\n{job.output()}")
        return f"the digest {digest}"

    return start, check


if __name__ == "__main__":
    chaos.run(make_start, FAULTS, MOST_FAULTS, longest_delay=6.0)
