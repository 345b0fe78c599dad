"""What fit costs: beside a loop of one's own and tf.keras fit, with callbacks and without, and on a
cluster of parameter servers beside TensorFlow's, in turn, in one run.

Works: cnn8, cnn64 (guide 004's model, so many images a step over all replicas, beside tf.keras and loops of
PyTorch's: Debian's, today's eager and compiled), loop8_1,
loop8_2, loop64_1, loop64_2 (the same beside the loop, on one and two replicas), checkpoint and
checkpoint_wide (ModelCheckpoint saves the whole model at the end of an epoch of 5 s; wide: 5.8 million
weights and Adam's moments, 70 MB; and how long it holds training up), tensorboard (scalars each epoch
of 5 s, histograms each other one), cluster (guide 001's fit on a chief, two workers and a ps task).

Of three epochs the last two count, and fill a turn. Callbacks are at work in every other epoch of one
fit: a round is two neighbouring epochs, one with it and one without. Beside the loop a round is a second of
either, in short turns of two new trainings. Ratios and the control: as in bench/step.py. A work takes up to
two minutes, all of them twelve.
"""

import functools
import itertools
import os
import pathlib
import sys
import tempfile

import report
import samples
import torch_peer
from harness import KEEP_FREED_MEMORY, Side, Worker, tensorflow_python
from report import Comparison, Work

EPOCH_SECONDS = 5
# Where epochs of a quiet machine differ by 1%, the median of so many ratios is within 0.6% (one sigma).
PAIRS = 8
# Trainings differ by 5% from one to the next.
LOOP_PAIRS = 24
THREADS = (1, 2)
# What tf.keras fit does once an execution it does in each step with less.
STEPS_PER_EXECUTION = 16


def fits(batch, tensorflow):
    return Work(f"fit of guide 004's CNN, batches of {batch}",
                [Comparison("fit", {"tensorflow": tensorflow, torch_peer.kinds_of("fit"): None})])


def beside_loop(replicas, batch):
    return Work(f"fit of guide 004's CNN, batches of {batch}, {replicas_label(replicas)}",
                [Comparison("fit alone", {"loop": 0.98})],
                rounds=lambda sides, options: pairs(
                    sides["fit alone"], "loop", f"pairs none cnn {replicas} {batch}",
                    (0.2, 2) if options.quick else (1, LOOP_PAIRS)))


def callback(title, name, command, stall=False):
    """`stall`: also how long the end of an epoch takes with it."""
    return Work(title, [Comparison(name, {"without": 0.98}),
                        *([Comparison("stall", {}, text=milliseconds)] if stall else [])],
                rounds=lambda sides, options: pairs(
                    sides[name], "without", command,
                    (1, 2) if options.quick else (EPOCH_SECONDS, PAIRS)))


def pairs(side, other, command, lengths):
    """The rounds that its program measures itself; lengths: the seconds and the number of rounds."""
    _, worker, _ = side.chosen
    seconds, count = lengths
    stall, *figures = map(float, worker.ask(f"{command} {seconds} {count}").split())
    return [{side.name: figures[i], other: figures[i + 1], "stall": stall}
            for i in range(0, len(figures), 2)]


def replicas_label(count):
    return f"{count} replica{'s' if count > 1 else ''}"


def milliseconds(seconds):
    return f"{1e3 * seconds:,.1f} ms"


WORKS = {
    "cnn8": fits(8, tensorflow=4.0),
    "cnn64": fits(64, tensorflow=2.0),
    "loop8_1": beside_loop(replicas=1, batch=8),
    "loop8_2": beside_loop(replicas=2, batch=8),
    "loop64_1": beside_loop(replicas=1, batch=64),
    "loop64_2": beside_loop(replicas=2, batch=64),
    "checkpoint": callback("ModelCheckpoint each epoch, CNN", "checkpoint",
                           "pairs checkpoint cnn 2 64", stall=True),
    "checkpoint_wide": callback("ModelCheckpoint each epoch, 70 MB", "checkpoint",
                                "pairs checkpoint wide 2 64", stall=True),
    "tensorboard": callback("TensorBoard, CNN", "tensorboard", "pairs tensorboard cnn 2 64"),
    "cluster": Work("guide 001's fit", [Comparison("cohort", {"tensorflow": 10.0})]),
}
BATCHES = {"cnn8": 8, "cnn64": 64}
TITLES = {"checkpoint": "fit with ModelCheckpoint", "tensorboard": "fit with TensorBoard",
          "without": "fit without", "fit alone": "Cohort fit", "loop": "guide 004's loop",
          "stall": "the longest stall"}


class Sides:
    """Starts each program when it is first needed, and keeps it until the end."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.workers = {}
        with Worker(program, directory) as worker:
            better = worker.ask("blas_kernels")
        self.blas_kernels = {} if better == "-" else {"OPENBLAS_CORETYPE": better}

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for worker in self.workers.values():
            worker.__exit__(*error)

    @functools.cached_property
    def tensorflow_python(self):
        return tensorflow_python()

    def versions(self):
        return sorted({worker.ask("version") for worker in self.workers.values()})

    def make(self, side, work):
        if work == "cluster":
            return self._tasks_side(side)
        if side in TITLES:
            return Side(TITLES[side], [("", self._cohort(), "")], name=side)
        model, batch = "cnn", BATCHES[work]
        if side.startswith("fit_"):
            return self._torch_side(torch_peer.KINDS[side.removeprefix("fit_")], model, batch)
        if side == "tensorflow":
            return Side("tf.keras fit", self._tensorflow_candidates(model, batch))
        return Side("Cohort fit", [
            ("1 replica on one core", self._cohort_on_one_core(), f"fit {model} 1 {batch}"),
            *((replicas_label(count), self._cohort(), f"fit {model} {count} {batch}")
              for count in (1, 2))])

    def _torch_side(self, kind, model, batch):
        module, words = torch_peer.PROGRAMS["fit"]

        def start(python, threads, blas):
            return self._worker(f"torch {python} {threads} {blas}",
                                [python, "-m", module, self.directory, threads],
                                environment=torch_peer.environment(threads, blas))

        candidates = torch_peer.candidates(kind, start, model, batch)
        return Side(torch_peer.title(kind, candidates[0][1], words), candidates)

    def _cohort(self):
        return self._worker("cohort", [self.program, self.directory])

    def _cohort_on_one_core(self):
        core = min(os.sched_getaffinity(0))
        return self._worker("cohort on one core", ["taskset", "--cpu-list", core, self.program,
                                                   self.directory])

    def _tensorflow_candidates(self, model, batch):
        candidates = []
        for (kind, threads), optimizer in itertools.product(
                [("plain", 1), ("plain", 2), ("mirrored", 1)], ["keras", "legacy"]):
            worker = self._worker(f"tensorflow {kind} {threads}",
                                  [self.tensorflow_python, "-m", "peers.tensorflow_fit",
                                   self.directory, threads, kind])
            where = thread_label(threads) if kind == "plain" else "2 replicas"
            candidates.append((f"{where}, {optimizer} optimizer", worker,
                               f"train {optimizer},{STEPS_PER_EXECUTION} {model} {batch}"))
        return candidates

    def _tasks_side(self, side):
        if side == "cohort":
            return Side("Cohort", [("", self._tasks("cohort tasks", [self.program]), "fit")])
        return Side("TensorFlow", [
            (thread_label(threads), self._tasks(f"tensorflow tasks {threads}", [
                self.tensorflow_python, "-m", "peers.tensorflow_fit", "cluster", threads]), "fit")
            for threads in THREADS])

    def _tasks(self, name, command):
        # Tasks watch each other: none is stopped.
        return self._worker(name, [sys.executable, "-m", "peers.coordinator_tasks", *command],
                            pauses=False)

    def _worker(self, name, command, pauses=True, environment=None):
        if name not in self.workers:
            self.workers[name] = Worker(
                *command, pauses=pauses,
                environment={**KEEP_FREED_MEMORY, **self.blas_kernels, "TF_CPP_MIN_LOG_LEVEL": "3",
                             "CUDA_VISIBLE_DEVICES": "", **(environment or {})})
        return self.workers[name]


def thread_label(threads):
    return f"{threads} thread{'s' if threads > 1 else ''}"


def main():
    options = report.parse_options(__doc__, WORKS)
    with tempfile.TemporaryDirectory() as directory, \
            Sides(pathlib.Path(options.program), directory) as sides:
        samples.write(directory)
        report.run(WORKS, options,
                   lambda name: {side: sides.make(side, name) for side in WORKS[name].names()},
                   sides.versions)


main()
