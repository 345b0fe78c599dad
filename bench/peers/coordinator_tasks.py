"""The cluster of bench/coordinator.py: a chief, a ps task and two workers. The chief carries out the
commands of stdin.

Usage: python3 -m peers.coordinator_tasks COMMAND..., which every task runs with TF_CONFIG set.
"""

import subprocess
import sys

from peers import cluster


def main():
    jobs = {"ps": 1, "worker": 2, "chief": 1}
    others = {"ps": subprocess.DEVNULL, "worker": subprocess.DEVNULL}
    tasks = cluster.start(jobs, sys.argv[1:], stdin={**others, "chief": None},
                          stdout={**others, "chief": None})
    chief = tasks.pop(("chief", 0))
    code = chief.wait()
    cluster.end(tasks.values(), seconds=3)
    sys.exit(code)


if __name__ == "__main__":
    main()
