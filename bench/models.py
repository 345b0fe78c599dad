"""What a training step of the models of examples/models costs: Cohort beside PyTorch and TensorFlow, in
turn, in one run.

Works: densenet, bert, ncf, nmt, transformer, in the sizes of bench/example_training.cc. All sides train on the
same samples, with models of as many parameters and much the same first losses, with dropout of 0.1 where a
model has it. Cohort takes part with one replica or with two that share the batch, whichever is better.
PyTorch takes part twice: today's (scripts/peers) eager and compiled. Everything else is as in step.py.

--processor-time, for machines that are never free: one core, and samples a second of processor time.
"""

import os
import pathlib
import sys
import tempfile
import time

import report
import samples
from report import Comparison, Work
from step_sides import StepSides

GOAL = 1.2
BATCHES = {"densenet": 16, "bert": 8, "ncf": 256, "nmt": 32, "transformer": 32}
TITLES = {"densenet": "DenseNet-BC", "bert": "BERT, masked tokens", "ncf": "NCF", "nmt": "NMT, attention",
          "transformer": "NMT, Transformer"}
PEERS = ("torch_eager", "torch_compiled", "tensorflow")


def work(name, ours):
    return Work(f"{TITLES[name]}, batch {BATCHES[name]}", [Comparison(ours, {PEERS: GOAL})],
                turns=1 if name == "ncf" else 2)


WORKS = {name: work(name, "cohort_either") for name in BATCHES}
ON_ONE_CORE = {name: work(name, "cohort1_core") for name in BATCHES}


class ByProcessorTime:
    """A harness.Worker whose trainings answer with samples a second of processor time."""

    def __init__(self, worker):
        self.worker = worker

    def __getattr__(self, name):
        return getattr(self.worker, name)

    def __call__(self, command):
        used, start = self._processor_time(), time.monotonic()
        answer = self.worker(command)
        if not command.startswith("train"):
            return answer
        return answer * (time.monotonic() - start) / (self._processor_time() - used)

    def _processor_time(self):
        stat = pathlib.Path(f"/proc/{self.worker.process.pid}/stat").read_text()
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def by_processor_time(side):
    """Of its candidates those of one thread."""
    side.candidates = [(label, ByProcessorTime(worker), command)
                       for label, worker, command in side.candidates
                       if not label.startswith("2 threads")]
    side.chosen = side.candidates[0]
    return side


def check_models_agree(model, parameters):
    if max(parameters.values()) > 1.01 * min(parameters.values()):
        sys.exit(f"the sides' models '{model}' differ: {parameters}")


def check_losses_agree(model, sides):
    losses = {side.full_title(): side.first_loss() for side in sides.values()}
    if max(losses.values()) > 1.25 * min(losses.values()):
        sys.exit(f"the sides' first losses of '{model}' differ: {losses}")


def main():
    options = report.parse_options(__doc__, WORKS, lambda parser: parser.add_argument(
        "--processor-time", action="store_true"))
    works = ON_ONE_CORE if options.processor_time else WORKS
    options.no_control |= options.processor_time
    worker = pathlib.Path(options.program).with_name("step_worker")
    with tempfile.TemporaryDirectory() as directory, StepSides(worker, directory) as step_sides:
        samples.write(directory)

        def make_sides(name):
            sides = {side: step_sides.make(side, name, BATCHES[name]) for side in works[name].names()}
            if options.processor_time:
                sides = {short: by_processor_time(side) for short, side in sides.items()}
            check_models_agree(name, step_sides.parameters(name))
            return sides

        def finish(name, sides):
            check_losses_agree(name, sides)
            step_sides.forget()

        report.run(works, options, make_sides, step_sides.versions, finish)


main()
