"""parameter_server.py COHORT PROGRAM: guide 001's program in one process, and as a real cluster that
loses a worker, a ps task and its coordinator to kill -9 and gets them back."""

import re
import subprocess
import sys
import tempfile

from launched_job import TIMEOUT, LaunchedJob, without_chief


def expect_lines(output, epochs):
    finished = re.findall(r"Finished epoch (\d+), accuracy is [01]\.\d{6}\.$", output, re.MULTILINE)
    if finished != [str(epoch) for epoch in range(epochs)]:
        sys.exit(f"these epochs were finished: {finished}\n{output}")
    for line in (r"Final loss is \d+\.\d{6}$", r"Mean staleness is \d+\.\d\d$",
                 r"Evaluation accuracy: [01]\.\d{6}$"):
        if not re.search(line, output, re.MULTILINE):
            sys.exit(f"no line is like {line}\n{output}")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode != 0:
        sys.exit(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return without_chief(done.stdout)


def expect_advice(program):
    """Started alone it says how a cluster is started."""
    done = subprocess.run([program], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode == 0 or "cohort launch --workers 3 --ps 2" not in done.stderr:
        sys.exit(f"{program} without a cluster ended with {done.returncode}: {done.stderr}")


def lose(command, task, says=None):
    """What the chief prints of a job that loses this task after its second epoch."""
    with LaunchedJob(command) as job:
        job.wait_for("Finished epoch 1,")
        job.kill(*task)
        if says:
            job.wait_for(says)
        return job.finish()


def lose_a_worker(cohort, program, epochs, restarts):
    """Without restarts the other worker does the rest, and the job ends as its chief does."""
    command = [cohort, "launch", "--chief", "--workers", "2", "--ps", "1", "--restarts", str(restarts), "--",
               program, "--epochs", str(epochs)]
    expect_lines(lose(command, ("worker", 1), "worker 1 is lost"), epochs)


def lose_and_restore(cohort, program, epochs, task):
    """A ps or the coordinator: the program goes on from its last checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        output = lose([cohort, "launch", "--chief", "--workers", "2", "--ps", "2", "--restarts", "2", "--", program,
                       "--epochs", str(epochs), "--checkpoints", folder], task)
    if not re.search(r"^Restored .*-\d+$", output, re.MULTILINE):
        sys.exit(f"without {task} nothing was restored:\n{output}")
    finished = [int(epoch) for epoch in re.findall(r"Finished epoch (\d+),", output)]
    repeated = len(finished) - epochs  # the one that was not saved yet
    if sorted(set(finished)) != list(range(epochs)) or finished != sorted(finished) or repeated > 1:
        sys.exit(f"after the loss of {task} these epochs were finished: {finished}\n{output}")
    if not re.search(r"^Evaluation accuracy: [01]\.\d{6}$", output, re.MULTILINE):
        sys.exit(f"after the loss of {task} nothing was evaluated:\n{output}")


def expect_shards(output):
    for i in range(2):
        line = rf"/part_{i} \(4, 16384\) is on /job:ps/replica:0/task:{i}/device:CPU:0$"
        if not re.search(line, output, re.MULTILINE):
            sys.exit(f"no line is like {line}\n{output}")


def main(cohort, program):
    expect_advice(program)
    output = run([program, "--in-process"])
    expect_lines(output, 4)
    expect_shards(output)
    with tempfile.TemporaryDirectory() as folder:
        output = run([cohort, "launch", "--chief", "--workers", "2", "--ps", "2", "--evaluator", "--",
                      program, "--checkpoints", folder])
        expect_lines(output, 4)
        expect_shards(output)
        if not re.search(r"^\[evaluator:0\] Side-car evaluation of .*-4: ", output, re.MULTILINE):
            sys.exit(f"the evaluator did not come to the last checkpoint:\n{output}")
    for restarts in (2, 0):
        lose_a_worker(cohort, program, 25, restarts)
    for task in (("ps", 1), ("chief", 0)):
        lose_and_restore(cohort, program, 25, task)


if __name__ == "__main__":
    main(*sys.argv[1:])
