"""PyTorch's turn of bench/step.py, in one process.

Usage: python3 -m peers.torch_step SAMPLES THREADS, with commands as in turns.py.
OPENBLAS_NUM_THREADS must be THREADS too.
"""

import gc
import sys

import torch

from peers import torch_models, torch_training, turns


class Peer:
    def __init__(self, directory):
        self.directory = directory

    def training(self, variant, model, batch):
        return torch_training.Training(self.directory, variant, model, batch).run, batch

    def parameters(self, model):
        return sum(p.numel() for p in torch_models.MODELS[model]().parameters())

    def forget(self):
        gc.collect()

    def version(self):
        return f"PyTorch {torch.__version__}"


def main():
    directory, threads = sys.argv[1:]
    torch_training.set_up(int(threads))
    turns.serve(Peer(directory))


if __name__ == "__main__":
    main()
