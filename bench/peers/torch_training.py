"""One rank's training in PyTorch, as a tuned loop of the guide's step has it."""

import time
import warnings

import torch

import samples
from peers import torch_models


def batches(directory, model, batch, rank, ranks, memory_format):
    inputs, dtype, shape, labels = samples.read(directory, model)
    inputs = torch.frombuffer(bytearray(inputs), dtype=getattr(torch, dtype)).reshape(shape)
    labels = torch.frombuffer(bytearray(labels), dtype=torch.int64)
    if model in torch_models.IMAGE_MODELS:
        inputs = inputs.permute(0, 3, 1, 2)
    mine = slice(rank * batch, (rank + 1) * batch)
    for chosen_inputs, chosen_labels in samples.ranges(batch * ranks):
        one = inputs[chosen_inputs][mine]
        yield (one.contiguous(memory_format=memory_format) if one.dim() == 4 else one,
               labels[chosen_labels][mine])


class Training:
    """`variant`: LAYOUT,OPTIMIZER with contiguous or channels_last, loop or foreach."""

    def __init__(self, directory, variant, model, batch, rank=0, ranks=1, wrap=lambda model: model):
        layout, optimizer = variant.split(",")
        memory_format = {"contiguous": torch.contiguous_format,
                         "channels_last": torch.channels_last}[layout]
        torch.manual_seed(1)
        module = torch_models.MODELS[model]()
        if model in torch_models.IMAGE_MODELS:
            module = module.to(memory_format=memory_format)
        self.model = wrap(module)
        self.optimizer = torch_models.make_optimizer(model, self.model, optimizer == "foreach")
        self.batches = list(batches(directory, model, batch, rank, ranks, memory_format))
        # Guide 004's step has an accuracy.
        self.correct = torch.zeros([], dtype=torch.int64) if model == "cnn" else None
        self.steps = 0

    def step(self):
        inputs, labels = self.batches[self.steps % len(self.batches)]
        self.steps += 1
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.model(inputs)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        self.optimizer.step()
        if self.correct is not None:
            self.correct += (logits.detach().argmax(1) == labels).sum()
        return loss.item()

    def run(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.step()
        return time.perf_counter() - start


def set_up(threads):
    torch.set_num_threads(threads)
    # Cohort and TensorFlow do. Before the first operation, whose threads inherit it.
    torch.set_flush_denormal(True)
    warnings.filterwarnings("ignore")
