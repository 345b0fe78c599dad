"""The models of the step benchmark in PyTorch: those of bench/models.cc, guide 004's, and torch_examples'."""

import torch
from torch import nn

from peers import torch_examples
from samples import CLASSES, VOCABULARY

# Keras' L2(1e-5) adds 1e-5 * sum(w^2) to the loss, whose gradient is that of this decay.
GUIDE_WEIGHT_DECAY = 2e-5
IMAGE_MODELS = ("cnn", "densenet", "resnet")


class Cnn(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 32, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(1600, 64), nn.ReLU(inplace=True), nn.Linear(64, CLASSES))


class Mlp(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(784, 128), nn.ReLU(inplace=True), nn.Linear(128, CLASSES))


class Embedding(nn.Sequential):
    def __init__(self):
        super().__init__(nn.EmbeddingBag(VOCABULARY, 64, mode="mean", sparse=True),
                         nn.Linear(64, CLASSES))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(64, 128, batch_first=True)
        self.output = nn.Linear(128, CLASSES)

    def forward(self, inputs):
        return self.output(self.lstm(inputs)[0][:, -1])


def convolution(inputs, outputs, size, stride):
    return nn.Conv2d(inputs, outputs, size, stride=stride, padding=size // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.inside = nn.Sequential(
            convolution(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
            convolution(outputs, outputs, 3, 1), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(convolution(inputs, outputs, 1, stride),
                                          nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, inputs):
        return self.relu(self.inside(inputs) + self.shortcut(inputs))


class ResNet18(nn.Sequential):
    def __init__(self):
        blocks = []
        inputs = 64
        for outputs in (64, 128, 256, 512):
            for stride in (1 if outputs == 64 else 2, 1):
                blocks.append(ResidualBlock(inputs, outputs, stride))
                inputs = outputs
        super().__init__(
            convolution(3, 64, 3, 1), nn.BatchNorm2d(64), nn.ReLU(inplace=True), *blocks,
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


MODELS = {"cnn": Cnn, "mlp": Mlp, "embedding": Embedding, "lstm": Lstm, "resnet": ResNet18,
          **torch_examples.MODELS}


def loss_of(name):
    """loss(logits, labels), a mean."""
    return torch_examples.LOSSES.get(name, nn.functional.cross_entropy)


# How an optimizer goes through the parameters. Debian's PyTorch has the first two on CPUs.
FORMS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}


def make_optimizer(name, model, form):
    """`form`: one of FORMS."""
    how = FORMS[form]
    if name == "embedding":
        return torch.optim.SGD(model.parameters(), lr=0.1, **how)
    if name == "resnet":
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **how)
    groups = model.parameters()
    if name == "cnn":
        groups = [{"params": [p for p in model.parameters() if p.dim() > 1],
                   "weight_decay": GUIDE_WEIGHT_DECAY},
                  {"params": [p for p in model.parameters() if p.dim() == 1]}]
    return torch.optim.Adam(groups, lr=0.001, **how)
