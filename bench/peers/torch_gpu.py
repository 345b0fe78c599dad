"""PyTorch's sides of bench_gpu: the works of bench/gpu/work.h on the machine's first GPU.

Usage: python3 -m peers.torch_gpu [--small] SECONDS SIDE/MODEL/BATCH[/FLAG...]...

Sides: "eager" (fused optimizers), "torch-graph" (the same, and the whole step one CUDA graph) and "compile"
(torch.compile of the model, mode reduce-overhead). Prints lines as bench_gpu does; without a GPU all of it runs
on the CPU.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional

from peers.torch_models import ResNet18, convolution

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCHES = 8
WIDTH, HEADS = 512, 8


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(32 * 13 * 13, 10))


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, stride):
        super().__init__()
        outputs = inner * 4
        self.inside = nn.Sequential(
            convolution(inputs, inner, 1, 1), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            convolution(inner, inner, 3, stride), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            convolution(inner, outputs, 1, 1), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, inputs):
        return self.relu(self.inside(inputs) + self.shortcut(inputs))


class ResNet50(nn.Sequential):
    def __init__(self):
        blocks, inputs, inner = [], 64, 64
        for count in (3, 4, 6, 3):
            for i in range(count):
                blocks.append(Bottleneck(inputs, inner, 2 if i == 0 and inner != 64 else 1))
                inputs = 4 * inner
            inner *= 2
        super().__init__(convolution(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(2048, 1000))


class AttentionBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.projections, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, _ = x.shape
        parts = self.projections(self.norm1(x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        attended = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4))
        y = x + self.output(attended.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return y + self.narrow(functional.gelu(self.wide(self.norm2(y))))


class Transformer(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.table = nn.Embedding(1000, WIDTH)
        self.blocks = nn.Sequential(*[AttentionBlock() for _ in range(blocks)])
        self.output = nn.Linear(WIDTH, 10)

    def forward(self, ids):
        return self.output(self.blocks(self.table(ids)).mean(1))


class Embedding(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.EmbeddingBag(rows, 64, mode="mean", sparse=True, device=DEVICE)
        self.output = nn.Linear(64, 10)

    def forward(self, ids):
        return self.output(self.table(ids))


class Together:
    """Several optimizers as one."""

    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def zero_grad(self, set_to_none):
        for one in self.optimizers:
            one.zero_grad(set_to_none=set_to_none)

    def step(self):
        for one in self.optimizers:
            one.step()


class Work:
    def __init__(self, name, small):
        self.name = name
        self.side, self.model, batch, *self.flags = name.split("/")
        self.small = small
        self.batch = min(int(batch), 2 if self.model == "resnet50" else 8) if small else int(batch)
        self.rows = 10_000 if small else 10_000_000

    def make_model(self):
        make = {"cnn": Cnn, "resnet18": ResNet18, "resnet50": ResNet50,
                "transformer": lambda: Transformer(1 if self.small else 6),
                "embedding": lambda: Embedding(self.rows)}[self.model]
        return make().to(DEVICE).train()

    def make_optimizer(self, model):
        if self.model == "embedding":
            return Together(torch.optim.SparseAdam(list(model.table.parameters()), lr=1e-3),
                            torch.optim.Adam(model.output.parameters(), lr=1e-3, fused=True))
        if self.model.startswith("resnet"):
            return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, fused=True)
        capturable = self.side == "torch-graph" and DEVICE == "cuda"
        return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=capturable)

    def make_batch(self):
        def images(side, channels):
            return torch.rand(self.batch, channels, side, side)
        classes = 1000 if self.model == "resnet50" else 10
        inputs = {"cnn": lambda: images(28, 1), "resnet18": lambda: images(32, 3),
                  "resnet50": lambda: images(64 if self.small else 224, 3),
                  "transformer": lambda: torch.randint(1000, (self.batch, 16 if self.small else 128)),
                  "embedding": lambda: torch.randint(self.rows, (self.batch, 10))}[self.model]()
        return inputs.to(DEVICE), torch.randint(classes, (self.batch,)).to(DEVICE)


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def captured(step, batches):
    """What replays `step` as a CUDA graph, on batch number `index`."""
    inputs, labels = (tensor.clone() for tensor in batches[0])
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(inputs, labels)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step(inputs, labels)

    def replay(index):
        inputs.copy_(batches[index % BATCHES][0])
        labels.copy_(batches[index % BATCHES][1])
        graph.replay()
        return loss.item()
    return replay


def make_step(work):
    model = work.make_model()
    optimizer = work.make_optimizer(model)
    batches = [work.make_batch() for _ in range(BATCHES)]
    call = torch.compile(model, mode="reduce-overhead") if work.side == "compile" else model

    def step(inputs, labels):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(DEVICE, torch.bfloat16, enabled="bf16" in work.flags):
            scores = call(inputs)
        loss = functional.cross_entropy(scores.float(), labels)
        loss.backward()
        optimizer.step()
        return loss

    if work.side == "torch-graph" and DEVICE == "cuda":
        return captured(step, batches)
    return lambda index: step(*batches[index % BATCHES]).item()


def measure(work, seconds):
    torch.manual_seed(1)
    step = make_step(work)

    def timed(count):
        start = time.perf_counter()
        for index in range(count):
            loss = step(index)
        wait()
        return (time.perf_counter() - start) / count, loss

    timed(1 if work.small else 15)
    best, loss = timed(1 if work.small else 10)
    count = int(seconds / 3 / best)
    if count > 1:
        turns = [timed(count) for _ in range(3)]
        best, loss = min(turn[0] for turn in turns), turns[-1][1]
    print(f"RESULT {work.name} {best * 1e3:.4f} {loss:.4f}", flush=True)


def main(arguments):
    small = arguments[:1] == ["--small"]
    seconds, *names = arguments[small:]
    failed = 0
    for name in names:
        try:
            measure(Work(name, small), float(seconds))
        except Exception as error:  # noqa: BLE001: the others are measured
            print(f"FAIL {name}: {str(error)[:300]}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
