"""What a coordinator of parameter servers costs: Cohort beside TensorFlow's ClusterCoordinator, in turn,
in one run; a chief, two workers and one ps task each, as processes of this host.

Works: noop (closures that do nothing), latency (schedule one, fetch its result), step (guide 001's
loop), pull and push (a variable of 64 MB, read and assigned by the coordinator; beside them a raw unix
socket that carries as many bytes, as the limit), sparse (steps of SGD on 8,192 of a table's rows of 64
floats each, of a cluster of their own; bench_store has what one core of a ps task takes). Figures, ratios
and the control: as in bench/step.py. Below the table: the peak memory of each task, over all works.
"""

import pathlib
import sys
import tempfile

import report
from harness import KEEP_FREED_MEMORY, Side, Worker, peak_memory, tensorflow_python
from report import Comparison, Work

THREADS = (1, 2)
WINDOWS = (2, 16)
SPARSE_ROWS = 1 << 20


def microseconds(times_a_second):
    return f"{1e6 / times_a_second:,.0f} us"


def milliseconds(times_a_second):
    return f"{1e3 / times_a_second:,.1f} ms"


def transfer(title):
    return Work(title, [Comparison("cohort", {"socket": 0.5, "tensorflow": None})],
                text=milliseconds)


WORKS = {
    "noop": Work("closures that do nothing", [
        Comparison("cohort", {"tensorflow": 20.0}, least=20_000)]),
    "latency": Work("schedule to fetch", [
        Comparison("cohort", {"tensorflow": None}, least=1 / 150e-6)], text=microseconds),
    "step": Work("guide 001's step", [Comparison("cohort", {"tensorflow": 10.0})],
                 text="{:,.1f}/s".format),
    "pull": transfer("64 MB from a ps task"),
    "push": transfer("64 MB to a ps task"),
    "sparse": Work("rows of 64 floats, looked up and updated", [Comparison("sparse", {})],
                   text=lambda rows: f"{rows / 1e6:,.2f} million/s"),
}


class Sides:
    """Starts each cluster when it is first needed, and keeps it until the end."""

    def __init__(self, program, directory):
        self.commands = {
            **{f"cohort {window}": [program, window] for window in WINDOWS},
            "cohort sparse": [program, WINDOWS[0], SPARSE_ROWS],
            **{f"tensorflow {threads}": [tensorflow_python(), "-m", "peers.tensorflow_coordinator",
                                         threads] for threads in THREADS}}
        self.socket_command = [program.with_name("bench_rpc"), directory]
        self.workers = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers.values():
            worker.__exit__(*error)

    def make(self, side, work):
        if side == "socket":
            return Side("unix socket", [("", self._worker("socket", self.socket_command),
                                         "socket bulk")])
        if side == "tensorflow":
            return Side("TensorFlow", [(f"{threads} thread{'s' if threads > 1 else ''}",
                                        self._cluster(f"tensorflow {threads}"), work)
                                       for threads in THREADS])
        if side == "sparse":
            return Side("Cohort", [("", self._cluster("cohort sparse"), work)])
        return Side("Cohort", [(f"window {window}", self._cluster(f"cohort {window}"), work)
                               for window in WINDOWS])

    def versions(self):
        return sorted({worker.ask("version") for name, worker in self.workers.items()
                       if name != "socket"})

    def peaks(self):
        """A line for each cluster that has taken part."""
        return [f"peak memory, {name}: " +
                ", ".join(f"{task} {mib:,.0f} MiB"
                          for task, mib in peak_memory(worker.process.pid).items())
                for name, worker in self.workers.items() if name != "socket"]

    def _cluster(self, name):
        # Tasks watch each other: none is stopped.
        return self._worker(name, [sys.executable, "-m", "peers.coordinator_tasks",
                                   *self.commands[name]],
                            pauses=False, environment={**KEEP_FREED_MEMORY,
                                                       "TF_CPP_MIN_LOG_LEVEL": "3",
                                                       "CUDA_VISIBLE_DEVICES": ""})

    def _worker(self, name, command, **options):
        if name not in self.workers:
            self.workers[name] = Worker(*command, **options)
        return self.workers[name]


def main():
    options = report.parse_options(__doc__, WORKS)
    with tempfile.TemporaryDirectory() as directory, \
            Sides(pathlib.Path(options.program), directory) as sides:
        report.run(WORKS, options,
                   lambda name: {side: sides.make(side, name) for side in WORKS[name].names()},
                   sides.versions, notes=sides.peaks)


main()
