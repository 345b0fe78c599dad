"""PyTorch's turn of bench/checkpoint.py: the same variables by torch.save and torch.load.

Usage: torch_save.py MIB; commands on stdin as for bench_checkpoint: save PATH, load PATH.
"""

import os
import sys
import time

import torch

VARIABLE_BYTES = 16 << 20


def main():
    count = (int(sys.argv[1]) << 20) // VARIABLE_BYTES
    state = {f"v{i}": torch.rand(VARIABLE_BYTES // 4) for i in range(count)}
    for line in sys.stdin:
        command, path = line.split()
        start = time.perf_counter()
        if command == "save":
            # To the disk, as ours.
            with open(path, "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
        else:
            loaded = torch.load(path)
            with torch.no_grad():
                for name, value in loaded.items():
                    state[name].copy_(value)
        print(time.perf_counter() - start, flush=True)


main()
