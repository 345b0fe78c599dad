"""Gloo's turn of bench/collective.py, through torch.distributed: so many processes of this host, or
one on each of the hosts (bench/hosts.py) that are named.

Usage: python3 -m peers.gloo_collective RANKS [HOST...], with commands OPERATION BYTES SECONDS on
stdin, or version. Gloo has no reduce_scatter: there its all_reduce is measured.
"""

import ctypes
import multiprocessing
import os
import sys
import tempfile
import time

import torch
from torch import distributed

import hosts
from peers.turns import time_steps

CLONE_NEWNET = 0x40000000
PORT = 2300


def make_call(operation, count, ranks):
    values = torch.zeros(count)
    if operation == "all_gather":
        part = torch.zeros(-(-count // ranks))
        parts = [torch.zeros_like(part) for _ in range(ranks)]
        return lambda: distributed.all_gather(parts, part)
    if operation == "barrier":
        return distributed.barrier
    return lambda: distributed.all_reduce(values)


def enter(host):
    """Moves this thread, and those that it will start, to another host."""
    with open(f"/run/netns/{host}", encoding="ascii") as network:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {host}")
    os.environ["GLOO_SOCKET_IFNAME"] = hosts.DEVICE


def serve_rank(rank, ranks, meeting_place, host, commands):
    torch.set_num_threads(1)
    if host:
        enter(host)
    distributed.init_process_group("gloo", init_method=meeting_place, rank=rank,
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
    ranks, names = int(sys.argv[1]), sys.argv[2:]
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        members = []
        meeting_place = (f"tcp://{hosts.address(0)}:{PORT}" if names
                         else f"file://{os.path.join(directory, 'ranks')}")
        for rank in range(ranks):
            ours, theirs = context.Pipe()
            host = names[rank] if names else None
            context.Process(target=serve_rank, daemon=True,
                            args=(rank, ranks, meeting_place, host, theirs)).start()
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
