"""PyTorch's DistributedDataParallel's turn of bench/step.py: two processes over Gloo.

Usage: python3 -m peers.torch_ddp SAMPLES THREADS, with commands as in turns.py and variants as in
torch_training.Rank; THREADS are a process's. OPENBLAS_NUM_THREADS must be THREADS too.
"""

import multiprocessing
import os
import sys
import tempfile

from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from peers import torch_training, turns

RANKS = 2


def wrap(module):
    # Batch statistics stay each rank's own, as Cohort's do.
    return DistributedDataParallel(module, gradient_as_bucket_view=True, broadcast_buffers=False)


def serve_rank(directory, threads, rank, meeting_place, commands):
    torch_training.set_up(threads)
    distributed.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank,
                                   world_size=RANKS)
    own = torch_training.Rank(directory, rank, RANKS, wrap)
    trainings = {}
    while True:
        try:
            command, key, *count = commands.recv()
        except EOFError:
            return
        if command == "forget":
            trainings.clear()
            own.forget()
            continue
        if key not in trainings:
            trainings[key] = own.training(*key)
        distributed.barrier()
        training = trainings[key]
        commands.send(training.run(*count) if command == "run" else training.first_loss())


class Peer:
    def __init__(self, directory, threads):
        context = multiprocessing.get_context("spawn")
        meeting_place = os.path.join(tempfile.mkdtemp(dir=directory), "ranks")
        self.parameters = torch_training.count_parameters
        self.version = torch_training.version
        self.ranks = []
        for rank in range(RANKS):
            ours, theirs = context.Pipe()
            context.Process(target=serve_rank, daemon=True,
                            args=(directory, threads, rank, meeting_place, theirs)).start()
            theirs.close()
            self.ranks.append(ours)

    def ask(self, *command):
        """The ranks' answers; they carry the command out at the same time."""
        for rank in self.ranks:
            rank.send(command)
        return [rank.recv() for rank in self.ranks]

    def training(self, *key):
        *_, batch = key
        return turns.Training(lambda count: max(self.ask("run", key, count)), RANKS * batch,
                              lambda: sum(self.ask("loss", key)) / RANKS)

    def forget(self):
        for rank in self.ranks:
            rank.send(("forget", None))


def main():
    directory, threads = sys.argv[1:]
    turns.serve(Peer(directory, int(threads)))


if __name__ == "__main__":
    main()
