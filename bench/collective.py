"""What collective calls between processes of one host cost: shared memory beside Gloo, Open MPI and
the memory itself, in turn, in one run.

Works: all_reduce, reduce_scatter and all_gather of 4 B to 64 MB between 2 and 4 processes, named
OPERATION-RANKS-SIZE ("all_reduce-2-4KB"). Figures are medians over the rounds; a ratio is the median
of the rounds' ratios. Open MPI takes part where its compiler mpicc and mpi.h are there. Each work is
measured while two cores scale to 1.8 at least, before and after; where none of three tries is,
nothing is reported (exit code 75).
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import report
from harness import BENCH, DEBIAN_PYTHON, Side, Worker
from report import Comparison, Work

SIZES = {"4B": 4, "4KB": 4 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "8MB": 8 << 20,
         "64MB": 64 << 20}
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather")
RANKS = (2, 4)


def goals(operation, ranks, size):
    """(the most seconds of ours, its ratios to Gloo and to the limit)."""
    if operation != "all_reduce":
        return None, None, None
    if ranks == 4:
        return None, 1.0, None
    return {"4KB": (10e-6, 20.0, None), "64MB": (None, 4.0, 0.5)}.get(size, (None, None, None))


def text(per_second):
    return f"{1e6 / per_second:,.1f} us"


def work(operation, ranks, size, with_mpi):
    most_seconds, gloo, limit = goals(operation, ranks, size)
    others = {"gloo": gloo, "other": None}
    if with_mpi:
        others["mpi"] = None
    if operation == "all_reduce" and SIZES[size] >= 1 << 20:
        others["limit"] = limit
    return Work(f"{operation} of {size}, {ranks} processes",
                [Comparison("own", others, most_seconds and 1 / most_seconds)], text)


class Sides:
    """Starts each program when it is first needed, and keeps it until the end."""

    def __init__(self, program, mpi_program):
        self.commands = {
            "own": lambda ranks: [program, ranks],
            "gloo": lambda ranks: [DEBIAN_PYTHON, "-m", "peers.gloo_collective", ranks],
            "mpi": lambda ranks: ["mpirun", "--quiet", "-np", ranks, "--oversubscribe", "--bind-to",
                                  "none", mpi_program]}
        self.commands["other"] = self.commands["limit"] = self.commands["own"]
        self.workers = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers.values():
            worker.__exit__(*error)

    def make(self, side, operation, ranks, size):
        size = SIZES[size]
        title, command = {
            "own": ("Cohort, in own memory", f"{operation} own {size}"),
            "other": ("Cohort, in other memory", f"{operation} other {size}"),
            "limit": ("the memory's limit", f"limit own {size}"),
            "gloo": ("Gloo" if operation != "reduce_scatter" else "Gloo's all_reduce",
                     f"{operation} {size}"),
            "mpi": ("Open MPI", f"{operation} {size}")}[side]
        return Side(title, [("", self._worker(side, ranks), command)], lambda seconds: 1 / seconds)

    def versions(self):
        return sorted({worker.ask("version") for worker in self.workers.values()})

    def _worker(self, side, ranks):
        command = self.commands[side](ranks)
        key = tuple(map(str, command))
        if key not in self.workers:
            # Root is refused without these two.
            self.workers[key] = Worker(*command, environment={
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
            self.workers[key].ask("version")  # it has started
        return self.workers[key]


def build_mpi_program(directory):
    """The peer's program; None where Open MPI is not there to compile it."""
    program = os.path.join(directory, "mpi_collective")
    with contextlib.suppress(FileNotFoundError):
        done = subprocess.run(["mpicc", "-O2", "-o", program, BENCH / "peers" / "mpi_collective.c"],
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0 and shutil.which("mpirun"):
            return program
    print("without Open MPI: libopenmpi-dev is not there", file=sys.stderr)
    return None


def main():
    with tempfile.TemporaryDirectory() as directory:
        mpi_program = build_mpi_program(directory)
        names = {f"{operation}-{ranks}-{size}": (operation, ranks, size)
                 for operation in OPERATIONS for ranks in RANKS for size in SIZES}
        works = {name: work(*parts, mpi_program is not None) for name, parts in names.items()}
        options = report.parse_options(__doc__, works)
        with Sides(pathlib.Path(options.program), mpi_program) as sides:
            report.run(works, options,
                       lambda name: {side: sides.make(side, *names[name])
                                     for side in works[name].names()}, sides.versions)


main()
