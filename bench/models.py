"""What a training step of the models of examples/models costs: Cohort beside PyTorch and TensorFlow, in
turn, in one run.

Works: densenet, bert, ncf, nmt, transformer, in the sizes of bench/example_training.cc, one replica on all
cores. All sides train on the same samples, with models of as many parameters and much the same first losses,
with dropout of 0.1 where a model has it. PyTorch takes part twice: today's (scripts/peers) eager and
compiled. Everything else is as in step.py.
"""

import pathlib
import sys
import tempfile

import report
import samples
from report import Comparison, Work
from step_sides import StepSides

GOAL = 1.2
BATCHES = {"densenet": 16, "bert": 8, "ncf": 256, "nmt": 32, "transformer": 32}
TITLES = {"densenet": "DenseNet-BC", "bert": "BERT, masked tokens", "ncf": "NCF", "nmt": "NMT, attention",
          "transformer": "NMT, Transformer"}
PEERS = ("torch_eager", "torch_compiled", "tensorflow")


def work(name):
    return Work(f"{TITLES[name]}, batch {BATCHES[name]}", [Comparison("cohort1", {PEERS: GOAL})],
                turns=1 if name == "ncf" else 2)


WORKS = {name: work(name) for name in BATCHES}


def check_models_agree(model, parameters):
    if max(parameters.values()) > 1.01 * min(parameters.values()):
        sys.exit(f"the sides' models '{model}' differ: {parameters}")


def check_losses_agree(model, sides):
    losses = {side.full_title(): side.first_loss() for side in sides.values()}
    if max(losses.values()) > 1.25 * min(losses.values()):
        sys.exit(f"the sides' first losses of '{model}' differ: {losses}")


def main():
    options = report.parse_options(__doc__, WORKS)
    worker = pathlib.Path(options.program).with_name("step_worker")
    with tempfile.TemporaryDirectory() as directory, StepSides(worker, directory) as step_sides:
        samples.write(directory)

        def make_sides(name):
            sides = {side: step_sides.make(side, name, BATCHES[name]) for side in WORKS[name].names()}
            check_models_agree(name, step_sides.parameters(name))
            return sides

        def finish(name, sides):
            check_losses_agree(name, sides)
            step_sides.forget()

        report.run(WORKS, options, make_sides, step_sides.versions, finish)


main()
