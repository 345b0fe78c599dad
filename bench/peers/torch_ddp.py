"""PyTorch's DistributedDataParallel's turn of bench/step.py: two processes over Gloo.

Usage: python3 -m peers.torch_ddp SAMPLES THREADS, with commands as in turns.py; THREADS are a
process's. OPENBLAS_NUM_THREADS must be THREADS too.
"""

import multiprocessing
import os
import sys
import tempfile

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from peers import torch_models, torch_training, turns

RANKS = 2


def wrap(module):
    # Batch statistics stay each rank's own, as Cohort's do.
    return DistributedDataParallel(module, gradient_as_bucket_view=True, broadcast_buffers=False)


def serve_rank(directory, threads, rank, meeting_place, commands):
    torch_training.set_up(threads)
    distributed.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank,
                                   world_size=RANKS)
    trainings = {}
    while True:
        try:
            key, count = commands.recv()
        except EOFError:
            return
        if key is None:
            trainings.clear()
            continue
        if key not in trainings:
            trainings[key] = torch_training.Training(directory, *key, rank, RANKS, wrap)
        distributed.barrier()
        commands.send(trainings[key].run(count))


class Peer:
    def __init__(self, directory, threads):
        context = multiprocessing.get_context("spawn")
        meeting_place = os.path.join(tempfile.mkdtemp(dir=directory), "ranks")
        self.ranks = []
        for rank in range(RANKS):
            ours, theirs = context.Pipe()
            context.Process(target=serve_rank, daemon=True,
                            args=(directory, threads, rank, meeting_place, theirs)).start()
            theirs.close()
            self.ranks.append(ours)

    def training(self, variant, model, batch):
        def run(count):
            for rank in self.ranks:
                rank.send(((variant, model, batch), count))
            return max(rank.recv() for rank in self.ranks)

        return run, RANKS * batch

    def parameters(self, model):
        return sum(p.numel() for p in torch_models.MODELS[model]().parameters())

    def forget(self):
        for rank in self.ranks:
            rank.send((None, 0))

    def version(self):
        return f"PyTorch {torch.__version__}"


def main():
    directory, threads = sys.argv[1:]
    turns.serve(Peer(directory, int(threads)))


if __name__ == "__main__":
    main()
