"""Gloo's turn of bench/collective.py, through torch.distributed: so many processes of this host.

Usage: python3 -m peers.gloo_collective RANKS, with commands OPERATION BYTES SECONDS on stdin, or
version. Gloo has no reduce_scatter: there its all_reduce is measured.
"""

import multiprocessing
import os
import sys
import tempfile
import time

import torch
from torch import distributed

from peers.turns import time_steps


def make_call(operation, count, ranks):
    values = torch.zeros(count)
    if operation == "all_gather":
        part = torch.zeros(-(-count // ranks))
        parts = [torch.zeros_like(part) for _ in range(ranks)]
        return lambda: distributed.all_gather(parts, part)
    if operation == "barrier":
        return distributed.barrier
    return lambda: distributed.all_reduce(values)


def serve_rank(rank, ranks, meeting_place, commands):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting_place}", rank=rank,
                                   world_size=ranks)
    call, key = None, None
    while True:
        try:
            wanted, times = commands.recv()
        except EOFError:
            return
        if wanted != key:
            call, key = make_call(*wanted, ranks), wanted
        distributed.barrier()
        start = time.perf_counter()
        for _ in range(times):
            call()
        commands.send(time.perf_counter() - start)


def main():
    ranks = int(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        members = []
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            context.Process(target=serve_rank, daemon=True,
                            args=(rank, ranks, os.path.join(directory, "ranks"), theirs)).start()
            theirs.close()
            members.append(ours)
        for line in sys.stdin:
            print(answer(members, line.split()), flush=True)


def answer(members, words):
    if words == ["version"]:
        return f"Gloo of PyTorch {torch.__version__}"
    operation, size, seconds = words
    wanted = (operation, int(size) // 4)

    def run(times):
        for member in members:
            member.send((wanted, times))
        return max(member.recv() for member in members)

    return time_steps(run, float(seconds))


if __name__ == "__main__":
    main()
