"""PyTorch's turn of bench/fit.py: a loop over shuffled batches, which is what it has for fit.

Usage: python3 -m peers.torch_fit SAMPLES THREADS, with commands as in turns.py and variants as in
torch_training.Rank. Batches are taken out of memory by index, since a DataLoader takes longer.
"""

import sys
import time

import torch

import samples
from peers import torch_step, torch_training, turns

EPOCHS = 2


class Peer(torch_step.Peer):
    def training(self, variant, model, batch):
        layout, *_ = variant.split(",")
        inputs, labels = torch_training.read(self.rank.directory, model)
        chosen = list(samples.ranges(batch))
        x = torch_training.laid_out(torch.cat([inputs[one] for one, _ in chosen]), layout)
        y = torch.cat([labels[one] for _, one in chosen])
        training = self.rank.make(variant, model)

        def shuffled():
            while True:
                for indices in torch.randperm(len(x)).split(batch):
                    yield x[indices], y[indices]

        data = shuffled()

        def run(count):
            """By epochs of half as many, as fit of the others has them."""
            start = time.perf_counter()
            for epoch in range(EPOCHS):
                training.correct.zero_()
                for _ in range(count // EPOCHS + (count % EPOCHS > epoch)):
                    training.step(*next(data))
                training.correct.item()
            return time.perf_counter() - start

        return turns.Training(run, batch)


def main():
    directory, threads = sys.argv[1:]
    torch_training.set_up(int(threads))
    turns.serve(Peer(directory))


if __name__ == "__main__":
    main()
