"""chaos_of_ps.py COHORT PROGRAM [--seconds N] [--seed S]: parameter servers that lose tasks again and again.

Counts with tests/cluster/parameter_server_counting.h. Each round has to end with counters that are exact on all ps
tasks; the program itself checks that they agree in every checkpoint.
"""

import re
import signal
import sys

import chaos

CHIEF = ["chief:0"]
WORKERS = [f"worker:{i}" for i in range(3)]
SERVERS = [f"ps:{i}" for i in range(2)]
TOTAL = 6000  # closures of a round
MOST_FAULTS = 5

# The last but one is shorter than what makes a task lost, the last is longer: a worker that is taken for lost goes on.
FAULTS = ((chaos.send_to_one(signal.SIGKILL, "kill", WORKERS), 6), (chaos.send_to_one(signal.SIGKILL, "kill", SERVERS), 3),
          (chaos.send_to_one(signal.SIGKILL, "kill", CHIEF), 3), (chaos.kill_all(WORKERS), 2),
          (chaos.send_to_one(signal.SIGTERM, "terminate", WORKERS), 2),
          (chaos.stop_for_a_while(CHIEF + WORKERS + SERVERS, 0.1, 1.0), 4),
          (chaos.stop_for_a_while(WORKERS, 3.0, 5.0), 2))


def make_start(cohort, program, folder):
    def start(name):
        directory = folder / name
        directory.mkdir()
        return chaos.Job(folder / f"{name}.log", cohort, ["--workers", str(len(WORKERS)), "--ps", str(len(SERVERS))],
                         4 * MOST_FAULTS, [program, directory, str(TOTAL)])

    def check(job):
        code = job.wait()
        counters = re.findall(r"counters: (\d+ \d+)$", job.output(), re.MULTILINE)
        if code != 0 or counters != [f"{TOTAL} {TOTAL}"]:
            sys.exit(f"a round ended with {code} and the counters {counters}:\n{job.output()}")
        return "exact counters"

    return start, check


if __name__ == "__main__":
    chaos.run(make_start, FAULTS, MOST_FAULTS, longest_delay=5.0, option=" --ps")
