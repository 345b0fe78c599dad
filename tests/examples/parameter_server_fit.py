"""parameter_server_fit.py COHORT PROGRAM: guide 001's Model.fit in one process, as a real cluster that
loses a worker to kill -9, and as one that loses its coordinator."""

import os
import re
import sys
import tempfile

from launched_job import LaunchedJob
from parameter_server import run

LINE = r"^20/20 - \d+s - loss: \d\.\d{4}(?:e[-+]\d+)? - \d+m?s/epoch - \d+[mu]?s/step$"


def expect_epochs(output, first, last):
    begun = re.findall(r"^Epoch (\d+)/(\d+)$", output, re.MULTILINE)
    if begun != [(str(epoch), str(last)) for epoch in range(first, last + 1)]:
        sys.exit(f"epochs {first} to {last} were expected, not {begun}:\n{output}")
    lines = re.findall(LINE, output, re.MULTILINE)
    if len(lines) != last - first + 1:
        sys.exit(f"{len(lines)} lines are like those of the guide:\n{output}")


def expect_files(folder):
    for name in ("log/train", "ckpt/model.json"):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            sys.exit(f"{path} was not written")


def launch(cohort, program, folder, epochs):
    return LaunchedJob([cohort, "launch", "--chief", "--workers", "2", "--ps", "1", "--restarts", "3", "--", program,
                        "--epochs", str(epochs), "--working-dir", folder])


def lose_a_worker(cohort, program):
    epochs = 60
    with tempfile.TemporaryDirectory() as folder:
        with launch(cohort, program, folder, epochs) as job:
            job.wait_for(r"Epoch 3/")
            job.kill("worker", 1)
            job.wait_for(r"worker 1 is lost")
            expect_epochs(job.finish(), 1, epochs)


def lose_the_coordinator(cohort, program):
    epochs = 40
    with tempfile.TemporaryDirectory() as folder:
        with launch(cohort, program, folder, epochs) as job:
            job.wait_for(r"Epoch 5/")
            job.kill("chief", 0)
            job.wait_for(r"BackupAndRestore: going on at epoch \d+, step 1,")
            output = job.finish()
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
