"""What a training step costs: Cohort beside PyTorch and TensorFlow, in turn, in one run.

Works: cnn8, cnn64 (guide 004's model, so many images a replica), mlp, embedding, lstm, resnet,
empty; of these, workers_cnn8 and so on: the same by two processes in step; hosted_cnn8 and hosted_mlp:
by replicas that two processes host; profiled_cnn8 and
profiled_cnn64: with the profiler on, beside the same without.
All sides train on the same samples, with models of as many parameters and much the same first losses.
PyTorch takes part three times: Debian's, and today's (scripts/peers) eager and compiled; goals are beside
the best of them. A peer's threads, memory layout and optimizer's form are those that a short calibration
finds best. --other-worker FILE: another build's step_worker takes part as well. Figures are medians over
the rounds; a ratio is the median of the rounds' ratios. Each work is measured while two cores scale
to 1.8 at least, before and after; where none of three tries is, nothing is reported (exit code 75).
"""

import pathlib
import sys
import tempfile

import harness
import report
import samples
import torch_peer
from report import Comparison, Work
from step_sides import StepSides

TORCH, DDP = torch_peer.kinds_of("torch"), torch_peer.kinds_of("ddp")


def guide(batch, ddp, torch):
    return Work(f"guide 004's CNN, {batch} a replica", [
        Comparison("cohort2", {DDP: ddp, "mirrored": 2.0, "cohort1": 1.0, "cohort1_double": 1.0}),
        Comparison("cohort1", {TORCH: torch, "tensorflow": 1.5})])


def short_turns(sides, options):
    """Of some steps each: what is looked for is less than what turns of many steps differ by."""
    turns = {name: lambda side=side: side.turn(options.seconds / 20)
             for name, side in sides.items()}
    return harness.alternate(turns, 40 * options.rounds)


def profiled(batch):
    return Work(f"guide 004's CNN, {batch} a replica, profiler", [
        Comparison("cohort2_profiled", {"cohort2": 0.99})], rounds=short_turns)


def torch_model(title, batch, ddp, others=None, turns=1):
    return Work(f"{title}, {batch} a replica", [
        Comparison("cohort2", {DDP: ddp, "mirrored": None, "cohort1": None, **(others or {})}),
        Comparison("cohort1", {"libtorch": 0.99, TORCH: None, "tensorflow": None})], turns=turns)


def two_workers(title, batch, ddp=None, tensorflow=None, turns=1):
    return Work(f"{title}, {batch} a worker, 2 workers", [
        Comparison("workers", {"cohort2": 0.9, DDP: ddp, "tensorflow_workers": tensorflow})],
        turns=turns)


def hosted(title, batch):
    """Replicas that workers host: what their independence of the workers costs."""
    return Work(f"{title}, {batch} a replica, hosted by 2 workers", [
        Comparison("hosted2", {"workers": 0.95}),
        Comparison("hosted8", {"cohort8": 0.9})])


WORKS = {
    "cnn8": guide(8, ddp=4.0, torch=3.0),
    "cnn64": guide(64, ddp=3.0, torch=2.3),
    "mlp": torch_model("MLP", 32, ddp=2.0),
    "embedding": torch_model("embedding", 256, ddp=2.0),
    "lstm": torch_model("LSTM", 32, ddp=2.0, others={"mirrored": 1.5}),
    "resnet": torch_model("ResNet-18", 16, ddp=1.0, others={"mirrored": 1.2, "cohort1_core": 1.5},
                          turns=4),
    "profiled_cnn8": profiled(8),
    "profiled_cnn64": profiled(64),
    "workers_cnn8": two_workers("guide 004's CNN", 8, ddp=2.0, tensorflow=1.8),
    "workers_cnn64": two_workers("guide 004's CNN", 64, ddp=1.8, tensorflow=1.5),
    "workers_mlp": two_workers("MLP", 32),
    "workers_embedding": two_workers("embedding", 256),
    "workers_resnet": two_workers("ResNet-18", 16, turns=4),
    "hosted_cnn8": hosted("guide 004's CNN", 8),
    "hosted_mlp": hosted("MLP", 32),
    "empty": Work(
        "empty strategy.run, 2 replicas",
        [Comparison("cohort_empty",
                    {"tensorflow_empty_eager": None, "tensorflow_empty_function": None},
                    least=1 / 10e-6)],
        text=lambda figure: f"{1e6 / figure:,.2f} us"),
}
# The samples' name and a replica's batch.
TRAINING = {"cnn8": ("cnn", 8), "cnn64": ("cnn", 64), "mlp": ("mlp", 32),
            "embedding": ("embedding", 256), "lstm": ("lstm", 32), "resnet": ("resnet", 16)}


def check_models_agree(model, parameters):
    # PyTorch's LSTM has one more bias for each gate.
    if max(parameters.values()) > 1.01 * min(parameters.values()):
        sys.exit(f"the sides' models '{model}' differ: {parameters}")


def check_losses_agree(model, sides):
    """All begin with a loss near that of a guess; PyTorch's, which begin with equal weights, with the same."""
    losses = {side.full_title(): (name, side.first_loss()) for name, side in sides.items()}
    for program in ("torch", "ddp"):
        own = [loss for name, loss in losses.values() if name.startswith(f"{program}_")]
        if own and max(own) > 1.02 * min(own):
            sys.exit(f"PyTorch's first losses of '{model}' differ: {losses}")
    every = [loss for _, loss in losses.values()]
    if max(every) > 1.25 * min(every):
        sys.exit(f"the sides' first losses of '{model}' differ: {losses}")


def with_other_build(work):
    """The same with what the other build's step_worker has: replicas of Cohort, and libtorch's loop."""
    def more(one):
        others = {("libtorch", "libtorch_other") if name == "libtorch" else name: goal
                  for name, goal in one.others.items()}
        return one._replace(others={**others, f"{one.ours}_other": None})

    return work._replace(comparisons=[more(one) if one.ours in ("cohort1", "cohort2") else one
                                      for one in work.comparisons])


def main():
    options = report.parse_options(__doc__, WORKS, lambda parser: parser.add_argument(
        "--other-worker", metavar="FILE"))
    works = {name: with_other_build(work) for name, work in WORKS.items()} \
        if options.other_worker else WORKS
    worker = pathlib.Path(options.program).with_name("step_worker")
    with tempfile.TemporaryDirectory() as directory, \
            StepSides(worker, directory, options.other_worker) as step_sides:
        samples.write(directory)

        def make_sides(name):
            model, batch = TRAINING.get(name.split("_")[-1], ("", 0))
            sides = {side: step_sides.make(side, model, batch) for side in works[name].names()}
            if model:
                check_models_agree(model, step_sides.parameters(model))
            return sides

        def finish(name, sides):
            if TRAINING.get(name.split("_")[-1]):
                check_losses_agree(name, sides)
            step_sides.forget()

        report.run(works, options, make_sides, step_sides.versions, finish)


main()
