"""parameter_server_fit.py COHORT PROGRAM: guide 001's Model.fit in one process, as a real cluster that
loses a worker to kill -9, and as one that loses its coordinator."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from parameter_server import TIMEOUT, run, tasks_of

LINE = r"^20/20 - \d+s - loss: \d\.\d{4}(?:e[-+]\d+)? - \d+m?s/epoch - \d+[mu]?s/step$"


def expect_epochs(output, first, last):
    begun = re.findall(r"^(?:\[chief:0\] )?Epoch (\d+)/(\d+)$", output, re.MULTILINE)
    if begun != [(str(epoch), str(last)) for epoch in range(first, last + 1)]:
        sys.exit(f"epochs {first} to {last} were expected, not {begun}:\n{output}")
    lines = re.findall(LINE, re.sub(r"^\[chief:0\] ", "", output, flags=re.MULTILINE), re.MULTILINE)
    if len(lines) != last - first + 1:
        sys.exit(f"{len(lines)} lines are like those of the guide:\n{output}")


def expect_files(folder):
    for name in ("log/train", "ckpt/model.json"):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            sys.exit(f"{path} was not written")


class Cluster:
    """A launched job, whose output grows in a file."""

    def __init__(self, cohort, program, folder, epochs):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [cohort, "launch", "--chief", "--workers", "2", "--ps", "1", "--restarts", "3", "--",
             program, "--epochs", str(epochs), "--working-dir", folder],
            stdout=self.log, stderr=subprocess.STDOUT, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.log.close()

    def output(self):
        self.log.seek(0)
        return self.log.read()

    def wait_for(self, text):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            output = self.output()
            if re.search(text, output):
                return
            if self.process.poll() is not None:
                sys.exit(f"it ended with {self.process.returncode} before '{text}':\n{output}")
            time.sleep(0.02)
        sys.exit(f"'{text}' did not come:\n{self.output()}")

    def kill(self, job, index):
        os.kill(tasks_of(self.process.pid)[job, index], signal.SIGKILL)

    def finish(self):
        self.process.wait(timeout=TIMEOUT)
        if self.process.returncode != 0:
            sys.exit(f"it ended with {self.process.returncode}:\n{self.output()}")
        return self.output()


def lose_a_worker(cohort, program):
    epochs = 60
    with tempfile.TemporaryDirectory() as folder:
        with Cluster(cohort, program, folder, epochs) as cluster:
            cluster.wait_for(r"Epoch 3/")
            cluster.kill("worker", 1)
            cluster.wait_for(r"worker 1 is lost")
            expect_epochs(cluster.finish(), 1, epochs)


def lose_the_coordinator(cohort, program):
    epochs = 40
    with tempfile.TemporaryDirectory() as folder:
        with Cluster(cohort, program, folder, epochs) as cluster:
            cluster.wait_for(r"Epoch 5/")
            cluster.kill("chief", 0)
            cluster.wait_for(r"BackupAndRestore: going on at epoch \d+, step 1,")
            output = cluster.finish()
        first = int(re.search(r"BackupAndRestore: going on at epoch (\d+)", output)[1])
        if first < 4:
            sys.exit(f"it went on at epoch {first}, although the backup was of epoch 4:\n{output}")
        expect_epochs(output[output.index("BackupAndRestore: going on"):], first, epochs)


def main(cohort, program):
    with tempfile.TemporaryDirectory() as folder:
        expect_epochs(run([program, "--in-process", "--working-dir", folder]), 1, 5)
        expect_files(folder)
    with tempfile.TemporaryDirectory() as folder:
        expect_epochs(run([cohort, "launch", "--chief", "--workers", "3", "--ps", "2", "--", program,
                           "--working-dir", folder]), 1, 5)
        expect_files(folder)
    lose_a_worker(cohort, program)
    lose_the_coordinator(cohort, program)


if __name__ == "__main__":
    main(*sys.argv[1:])
