"""What a training step keeps of its speed beside neighbours that use the cores.

Neighbours are compilers in a loop (g++ of a large standard header: they start, run for a second and
end) and burners, which compute and never wait; 1, 2 and 4 of them, started by this program. A side has
a fair share: of its speed with nothing beside it as much as its threads get of the cores where every
thread that runs gets the same. Threads that run are counted a hundred times a second during each turn
(/proc/stat), so that others' programs count, too. Reported are the median and the least turn over the
fair share; the goals are 0.7 and 0.4.

The speed with nothing beside it is measured first, while two cores scale to 1.8 at least; where none
of three tries is, nothing is reported (exit code 75). With --no-control it is what it is.
"""

import argparse
import json
import os
import pathlib
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import cores
import report
import samples
from harness import KEEP_FREED_MEMORY, Worker

GOALS = {"median": 0.7, "least": 0.4}
COMPILE = ("while :; do echo '#include <bits/stdc++.h>' | "
           "g++ -std=c++20 -O2 -x c++ -c -o /dev/null -; done")
BETWEEN_COUNTS = 0.01


class Side:
    """A program that trains, with so many threads; figure(answer) is what a turn did in a second."""

    def __init__(self, title, worker, command, threads, figure=lambda answer: answer):
        self.title, self.worker, self.command = title, worker, command
        self.threads, self.figure = threads, figure

    def turn(self, seconds):
        """Its figure, and how many other threads ran on average."""
        self.worker.start(f"{self.command} {seconds}")
        others = []
        while not select.select([self.worker.process.stdout], [], [], BETWEEN_COUNTS)[0]:
            others.append(running_threads() - 1 - own_threads(self.worker.process.pid))
        return self.figure(float(self.worker.finish())), statistics.mean(others or [0])


def running_threads():
    """Threads of this host that run or could, this one among them."""
    text = pathlib.Path("/proc/stat").read_text()
    return int(text.split("procs_running ")[1].split()[0])


def own_threads(pid):
    """Of them, those of a process and its children."""
    count = 0
    for stat in [*pathlib.Path(f"/proc/{pid}/task").glob("*/stat")]:
        try:
            count += stat.read_text().rsplit(")", 1)[1].split()[0] == "R"
            children = (stat.parent / "children").read_text().split()
        except OSError:  # it has ended
            continue
        count += sum(own_threads(int(child)) for child in children)
    return count


def fair_share(threads, others):
    """What so many threads keep of the speed that they have alone."""
    num_cores = len(os.sched_getaffinity(0))
    alone = min(threads, num_cores)
    return min(1, threads * num_cores / (threads + others) / alone)


class Neighbours:
    """So many of a kind, for the time of a with block."""

    def __init__(self, kind, count, burner):
        self.command = ["sh", "-c", COMPILE] if kind == "compilers" else [str(burner)]
        self.count = count

    def __enter__(self):
        self.processes = [subprocess.Popen(self.command, process_group=0)
                          for _ in range(self.count)]
        time.sleep(0.2)  # a compiler has started

    def __exit__(self, *_):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def make_sides(step_worker, directory):
    def worker(*command, pauses=True):
        return Worker(*command, pauses=pauses, environment=KEEP_FREED_MEMORY)

    own = [step_worker, directory]
    one = worker(*own)
    pinned = worker("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *own)
    two = worker(sys.executable, "-m", "peers.two_workers", "free", *own, pauses=False)
    return {
        "1x8": Side("1 replica of 8", one, "train cnn 1 8", 2),
        "1x16": Side("1 replica of 16", one, "train cnn 1 16", 2),
        "1x64": Side("1 replica of 64", one, "train cnn 1 64", 2),
        "2x8": Side("2 replicas of 8", one, "train cnn 2 8", 2),
        "2x64": Side("2 replicas of 64", one, "train cnn 2 64", 2),
        "workers": Side("2 workers of 8", two, "train - cnn 8", 2),
        "core": Side("1 replica of 8 on one core", pinned, "train cnn 1 8", 1),
        "mlp": Side("MLP, a TorchModel, 1 replica", one, "train mlp 1 32", 2),
        "lstm": Side("LSTM, 1 replica", one, "train lstm 1 32", 2),
        "empty": Side("empty run, 2 replicas", one, "empty run 2 0", 2, lambda answer: 1 / answer),
    }


def take_turns(sides, rounds, seconds):
    """{side: [(figure, others)]}"""
    turns = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            turns[name].append(side.turn(seconds))
    return turns


def rows(sides, quiet, beside, neighbours):
    """A row for each side: {side, neighbours, quiet, median, least, ...}."""
    for name, side in sides.items():
        alone = statistics.median(figure for figure, _ in quiet[name])
        shares = [figure / alone / fair_share(side.threads, others)
                  for figure, others in beside[name]]
        yield {"side": side.title, "neighbours": neighbours, "quiet": alone,
               "beside": statistics.median(figure for figure, _ in beside[name]),
               "others": statistics.mean(others for _, others in beside[name]),
               "median": statistics.median(shares), "least": min(shares)}


def print_rows(all_rows):
    lines = [[row["side"], row["neighbours"], f"{row['quiet']:,.0f}", f"{row['beside']:,.0f}",
              f"{row['others']:.1f}", f"{row['median']:.2f}", f"{row['least']:.2f}",
              "met" if all(row[goal] >= least for goal, least in GOALS.items()) else "MISSED"]
             for row in all_rows]
    header = ["side", "neighbours", "alone, /s", "beside, /s", "others", "of its share", "least", ""]
    print("\n".join(report.table(header, lines)), flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", metavar="SIDE,SIDE", help="of 1x8, 1x16, 1x64, 2x8, 2x64, workers, "
                        "core, mlp, lstm, empty")
    parser.add_argument("--neighbours", default="compilers,burners", metavar="KIND,KIND")
    parser.add_argument("--counts", default="1,2,4", metavar="COUNT,COUNT")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--step-worker", help="another build's, for a comparison")
    parser.add_argument("--no-control", action="store_true", help="to try things out")
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def main():
    options = parse_options()
    program = pathlib.Path(options.program)
    step_worker = options.step_worker or program.with_name("step_worker")
    with tempfile.TemporaryDirectory() as directory, cores.Control() as control:
        samples.write(directory)
        sides = make_sides(step_worker, directory)
        workers = {side.worker for side in sides.values()}
        if options.only:
            sides = {name: sides[name] for name in options.only.split(",")}
        take_turns(sides, 1, 0.1)
        measure = lambda: take_turns(sides, options.rounds, options.seconds)
        if options.no_control:
            print("NOT A RESULT: measured without the control, on a machine that may be busy")
            quiet = measure()
        else:
            quiet, _ = cores.while_free(control.measure, measure)
        all_rows = []
        for kind in options.neighbours.split(","):
            for count in map(int, options.counts.split(",")):
                with Neighbours(kind, count, program):
                    beside = measure()
                new = list(rows(sides, quiet, beside, f"{count} {kind}"))
                print_rows(new)
                all_rows += new
        for worker in workers:
            worker.__exit__()
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({"machine": report.machine(), "rows": all_rows}, indent=1))


if __name__ == "__main__":
    main()
