"""PyTorch's turn of bench/step.py, in one process.

Usage: python3 -m peers.torch_step SAMPLES THREADS, with commands as in turns.py and variants as in
torch_training.Rank. OPENBLAS_NUM_THREADS must be THREADS too.
"""

import gc
import sys

from peers import torch_training, turns


class Peer:
    def __init__(self, directory):
        self.rank = torch_training.Rank(directory)
        self.parameters = torch_training.count_parameters
        self.version = torch_training.version

    def training(self, variant, model, batch):
        return self.rank.training(variant, model, batch)

    def forget(self):
        self.rank.forget()
        gc.collect()


def main():
    directory, threads = sys.argv[1:]
    torch_training.set_up(int(threads))
    turns.serve(Peer(directory))


if __name__ == "__main__":
    main()
