"""One rank's training in PyTorch, as a tuned loop of the guide's step has it."""

import copy
import logging
import sys
import time
import warnings

import torch

import samples
from peers import torch_models, turns

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def read(directory, model):
    """(inputs, labels), of all samples."""
    inputs, dtype, shape, labels = samples.read(directory, model)
    inputs = torch.frombuffer(bytearray(inputs), dtype=getattr(torch, dtype)).reshape(shape)
    labels = torch.frombuffer(bytearray(labels), dtype=torch.int64)
    labels = labels.reshape(-1, *samples.LABELS_SHAPES.get(model, ()))
    if model in torch_models.IMAGE_MODELS:
        inputs = inputs.permute(0, 3, 1, 2)
    return inputs, labels


def laid_out(inputs, layout):
    return inputs.contiguous(memory_format=LAYOUTS[layout]) if inputs.dim() == 4 else inputs


def batches(directory, model, batch, rank, ranks, layout):
    inputs, labels = read(directory, model)
    mine = slice(rank * batch, (rank + 1) * batch)
    for chosen_inputs, chosen_labels in samples.ranges(batch * ranks):
        yield laid_out(inputs[chosen_inputs][mine], layout), labels[chosen_labels][mine]


class Model:
    """A module and its loss, eager or compiled. Trainings with different optimizers share one, since
    compiling takes seconds; each begins with the same parameters."""

    def __init__(self, name, layout, mode, wrap):
        torch.manual_seed(1)
        module = torch_models.MODELS[name]()
        if name in torch_models.IMAGE_MODELS:
            module = module.to(memory_format=LAYOUTS[layout])
        self.module = wrap(module)
        self.beginning = copy.deepcopy(self.module.state_dict())
        # Guide 004's step has an accuracy.
        self.counts = name == "cnn"
        self.loss_of_logits = torch_models.loss_of(name)
        if mode == "compiled":
            check_vectors()
        # Of one batch size: of several the graph would be of any size, and slower. A compiled step of the
        # optimizer is slower than a fused one.
        self.loss = torch.compile(self._loss, dynamic=False) if mode == "compiled" else self._loss

    def begin_anew(self):
        self.module.load_state_dict(self.beginning)

    def _loss(self, inputs, labels):
        logits = self.module(inputs)
        correct = (logits.detach().argmax(1) == labels).sum() if self.counts else 0
        return self.loss_of_logits(logits, labels), correct


def check_vectors():
    """torch.compile makes do without AVX where its trial of the compiler fails, without a word."""
    from torch._inductor import cpu_vec_isa
    if not cpu_vec_isa.pick_vec_isa() and cpu_vec_isa.x86_isa_checker():
        raise RuntimeError("torch.compile would not use the vectors that this processor has")


class Training:
    """A model that an optimizer trains, step by step."""

    def __init__(self, name, model, form):
        self.model = model
        model.begin_anew()
        self.optimizer = torch_models.make_optimizer(name, model.module, form)
        self.correct = torch.zeros([], dtype=torch.int64)

    def step(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        loss, correct = self.model.loss(inputs, labels)
        loss.backward()
        self.optimizer.step()
        if self.model.counts:
            self.correct += correct
        return loss.item()


class Rank:
    """The trainings of one process. A variant is LAYOUT,MODE,FORM: contiguous or channels_last, eager or
    compiled, a form of torch_models.FORMS."""

    def __init__(self, directory, rank=0, ranks=1, wrap=lambda module: module):
        self.directory, self.rank, self.ranks, self.wrap = directory, rank, ranks, wrap
        self.models = {}

    def make(self, variant, name):
        layout, mode, form = variant.split(",")
        key = name, layout, mode
        if key not in self.models:
            self.models[key] = Model(*key, self.wrap)
        return Training(name, self.models[key], form)

    def training(self, variant, name, batch):
        """A turns.Training over the samples' batches."""
        layout, *_ = variant.split(",")
        own = list(batches(self.directory, name, batch, self.rank, self.ranks, layout))

        def first_loss():
            # Of one made for it: another training has begun anew with the model since this one did.
            fresh = turns.over(own, self.make(variant, name).step, batch)
            fresh.run(samples.FIRST_STEPS)
            return fresh.first_loss()

        return turns.over(own, self.make(variant, name).step, batch)._replace(first_loss=first_loss)

    def forget(self):
        self.models.clear()
        if hasattr(torch, "compile"):
            torch.compiler.reset()


def set_up(threads):
    torch.set_num_threads(threads)
    # Cohort and TensorFlow do. Before the first operation, whose threads inherit it.
    torch.set_flush_denormal(True)
    warnings.filterwarnings("ignore")
    if hasattr(torch, "compile"):
        from torch import _dynamo
        from torch._inductor import config as inductor
        logging.disable(logging.WARNING)
        # One function for all models; beyond the limit it would run eagerly, without a word.
        _dynamo.config.recompile_limit = 64
        _dynamo.config.fail_on_recompile_limit_hit = True
        # The environment's: see stand_ins.py.
        inductor.cpp.cxx = (f"{sys.prefix}/bin/g++",)


def version():
    return f"PyTorch {torch.__version__.split('+')[0]}"


def count_parameters(name):
    return sum(p.numel() for p in torch_models.MODELS[name]().parameters())
