"""PyTorch as a peer: Debian's and today's, in the variants of which one is its best."""

import functools
import itertools
import os
import pathlib
import subprocess
from typing import Callable, NamedTuple

from harness import BENCH, DEBIAN_PYTHON

# (OpenMP's, OpenBLAS's): the latter's spin after each product, on the cores that the former need.
OPENMP_AND_BLAS = ((1, 1), (2, 2), (2, 1))
IMAGE_MODELS = ("cnn", "densenet", "resnet")
ONE_FORM_MODELS = ("bert", "densenet", "nmt", "transformer")
# What the names of sides begin with: the program, and what titles say of it.
PROGRAMS = {"torch": ("peers.torch_step", ""), "ddp": ("peers.torch_ddp", " DDP, 2 processes"),
            "fit": ("peers.torch_fit", ", a loop")}


@functools.cache
def todays_python():
    """The interpreter of the environment that has today's PyTorch, which is made where it is missing."""
    done = subprocess.run([BENCH.parent / "scripts" / "peers"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return f"{done.stdout.strip()}/bin/python"


class Kind(NamedTuple):
    """A PyTorch, eager or compiled: see peers/torch_training.py."""

    name: str
    python: Callable
    threads: tuple
    mode: str
    forms: tuple


# Today's has MKL within, whose threads are OpenMP's.
KINDS = {
    "debian": Kind("", lambda: DEBIAN_PYTHON, OPENMP_AND_BLAS, "eager", ("loop", "foreach")),
    "eager": Kind("eager", todays_python, ((1, 1), (2, 2)), "eager", ("loop", "foreach", "fused")),
    "compiled": Kind("compiled", todays_python, ((1, 1), (2, 2)), "compiled",
                     ("loop", "foreach", "fused")),
}


def kinds_of(program):
    """The names of the sides of a program, one for each kind: the best of them is PyTorch's best."""
    return tuple(f"{program}_{kind}" for kind in KINDS)


def environment(threads, blas):
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(blas),
            # What was compiled once is found again. No process of its own is left to compile.
            "TORCHINDUCTOR_CACHE_DIR": str(cache / "cohort" / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1"}


def candidates(kind, start, model, batch):
    """[(label, worker, command)] of a kind; start(python, threads, blas) returns the worker."""
    layouts = ["contiguous", "channels_last"] if model in IMAGE_MODELS else ["contiguous"]
    # A fused update of sparse gradients does not exist.
    forms = [form for form in kind.forms if (model, form) != ("embedding", "fused")]
    # All candidates keep their trainings, and those of ResNet-18 would take 24 GiB. For those of
    # examples/models the last form is the best, and compiling each of them takes a minute.
    forms = forms[-1:] if model == "resnet" or model in ONE_FORM_MODELS else forms
    return [(label(threads, *blas_label(threads, blas),
                   *([layout] if model in IMAGE_MODELS else []), f"{form} optimizer"),
             start(kind.python(), threads, blas),
             f"train {layout},{kind.mode},{form} {model} {batch}")
            for (threads, blas), layout, form in itertools.product(kind.threads, layouts, forms)]


def title(kind, worker, words):
    """Of a side of such candidates."""
    version = ".".join(worker.ask("version").split(".")[:2])
    return ", ".join(filter(None, [f"{version}{words}", kind.name]))


def blas_label(threads, blas):
    return [] if blas == threads else [f"{blas} in BLAS"]


def label(threads, *words):
    return ", ".join([f"{threads} thread{'s' if threads > 1 else ''}", *words])
