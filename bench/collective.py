"""What collective calls between processes of one host cost: shared memory beside Gloo, Open MPI and
the memory itself, in turn, in one run. With --network, the same between two hosts (bench/hosts.py).

Works: all_reduce, reduce_scatter and all_gather of 4 B to 64 MB between 2 and 4 processes, named
OPERATION-RANKS-SIZE ("all_reduce-2-4KB"); tree_sum and tree_sum_of_6, sums by a tree over one replica a
process and over 6, beside all_reduce. Over the network: all_reduce between 2, named LINK-SIZE
("open-64KB", "gbit-8MB"), over a link without limit and one that carries 1 Gbit/s each way. Figures are medians over the rounds; a ratio is the median
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
from hosts import Hosts
from report import Comparison, Work

SIZES = {"4B": 4, "4KB": 4 << 10, "64KB": 64 << 10, "1MB": 1 << 20, "8MB": 8 << 20,
         "64MB": 64 << 20}
OPERATIONS = ("all_reduce", "reduce_scatter", "all_gather")
TREE_SUMS = ("tree_sum", "tree_sum_of_6")
RANKS = (2, 4)

GIGABIT = 10**9
LINKS = {"open": "no limit", "gbit": "1 Gbit/s"}
NETWORK_SIZES = {"open": ("4KB", "64KB", "1MB", "8MB", "64MB"), "gbit": ("64KB", "1MB", "8MB")}


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


def tree_work(operation, ranks, size):
    goal = 0.9 if operation == "tree_sum" and ranks == 2 else None
    return Work(f"{operation} of {size}, {ranks} processes",
                [Comparison(operation, {"own": goal})], text)


class Workers:
    """Starts each program when it is first needed, and keeps it until the end."""

    def __init__(self, **options):
        self.options = options
        self.workers = {}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers.values():
            worker.__exit__(*error)

    def versions(self):
        return sorted({worker.ask("version") for worker in self.workers.values()})

    def start(self, command):
        key = tuple(map(str, command))
        if key not in self.workers:
            self.workers[key] = Worker(*command, **self.options)
            self.workers[key].ask("version")  # it has started
        return self.workers[key]


class Sides(Workers):
    """Of one host."""

    def __init__(self, program, mpi_program):
        # Root is refused without these two.
        super().__init__(environment={"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
        self.commands = {
            "own": lambda ranks: [program, ranks],
            "gloo": lambda ranks: [DEBIAN_PYTHON, "-m", "peers.gloo_collective", ranks],
            "mpi": lambda ranks: ["mpirun", "--quiet", "-np", ranks, "--oversubscribe", "--bind-to", "none",
                                  mpi_program]}
        for side in ("other", "limit", *TREE_SUMS):
            self.commands[side] = self.commands["own"]

    def make(self, side, operation, ranks, size):
        size = SIZES[size]
        if operation in TREE_SUMS and side == "own":
            operation = "all_reduce"
        title, command = {
            "tree_sum": ("Cohort, a tree", f"tree_sum own {size}"),
            "tree_sum_of_6": ("Cohort, a tree over 6", f"tree_sum_of_6 own {size}"),
            "own": ("Cohort, in own memory", f"{operation} own {size}"),
            "other": ("Cohort, in other memory", f"{operation} other {size}"),
            "limit": ("the memory's limit", f"limit own {size}"),
            "gloo": ("Gloo" if operation != "reduce_scatter" else "Gloo's all_reduce",
                     f"{operation} {size}"),
            "mpi": ("Open MPI", f"{operation} {size}")}[side]
        worker = self.start(self.commands[side](ranks))
        return Side(title, [("", worker, command)], lambda seconds: 1 / seconds)


class NetworkSides(Workers):
    """Between two hosts."""

    TITLES = {"over_gloo": "Cohort over Gloo", "calls": "Cohort over calls",
              "tls": "Cohort over calls with TLS", "gloo": "Gloo", "link": "the link"}

    def __init__(self, program, network):
        # Ranks that watch each other are not stopped; between turns they sleep.
        super().__init__(pauses=False)
        self.network = network
        self.backends = {"over_gloo": "gloo", "calls": "calls", "tls": "tls"}
        self.program = program

    def make(self, side, size):
        size = SIZES[size]
        if side == "link":  # both ranks send as many bytes as there are, all the time
            return Side(self.TITLES[side], [("", lambda _: 8 * size / GIGABIT, "")],
                        lambda seconds: 1 / seconds)
        if side == "gloo":
            command = [DEBIAN_PYTHON, "-m", "peers.gloo_collective", 2, *self.network.names]
            text = f"all_reduce {size}"
        else:
            command = [self.program, 2, self.backends[side], *self.network.names]
            text = f"all_reduce own {size}"
        return Side(self.TITLES[side], [("", self.start(command), text)],
                    lambda seconds: 1 / seconds)


def network_work(link, size):
    large = SIZES[size] >= 64 << 10
    beside_gloo = Comparison("over_gloo", {"gloo": 1 / 1.1 if large and link == "open" else None})
    calls = Comparison("calls", {"gloo": 0.5 if large and link == "open" else None, "tls": None})
    if link == "gbit":
        least = 0.9 if SIZES[size] >= 1 << 20 else None
        beside_gloo.others["link"] = least
        calls.others["link"] = None
    return Work(f"all_reduce of {size}, 2 hosts, {LINKS[link]}", [beside_gloo, calls], text)


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


def main_of_one_host():
    with tempfile.TemporaryDirectory() as directory:
        mpi_program = build_mpi_program(directory)
        names = {f"{operation}-{ranks}-{size}": (operation, ranks, size)
                 for operation in OPERATIONS for ranks in RANKS for size in SIZES}
        works = {name: work(*parts, mpi_program is not None) for name, parts in names.items()}
        trees = {f"{operation}-{ranks}-{size}": (operation, ranks, size)
                 for operation in TREE_SUMS for ranks in RANKS for size in SIZES}
        works.update({name: tree_work(*parts) for name, parts in trees.items()})
        names.update(trees)
        options = report.parse_options(__doc__, works)
        with Sides(pathlib.Path(options.program), mpi_program) as sides:
            report.run(works, options,
                       lambda name: {side: sides.make(side, *names[name])
                                     for side in works[name].names()}, sides.versions)


def main_of_two_hosts():
    names = {f"{link}-{size}": (link, size) for link in LINKS for size in NETWORK_SIZES[link]}
    works = {name: network_work(*parts) for name, parts in names.items()}
    options = report.parse_options(__doc__, works)
    with Hosts() as network, NetworkSides(pathlib.Path(options.program), network) as sides:

        def make_sides(name):
            link, size = names[name]
            made = {side: sides.make(side, size) for side in works[name].names()}
            network.limit(GIGABIT if link == "gbit" else None)
            return made

        report.run(works, options, make_sides, sides.versions)


def main():
    if "--network" in sys.argv:
        sys.argv.remove("--network")
        main_of_two_hosts()
    else:
        main_of_one_host()


main()
