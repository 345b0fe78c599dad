"""Writes and reads 1 GiB of variables: Cohort beside dd and torch.save, Debian's and today's, in turn, in
one run.

Usage: checkpoint.py BENCH_CHECKPOINT [--mib N] [--rounds N] [--directory DIR] [--json FILE]

dd is the limit: the same number of bytes in blocks of 8 MiB with O_DIRECT, and synced. Reads begin
with the file out of the page cache, for everybody. Takes 5 GiB a round while it runs. Medians over
the rounds; the control is dd against itself: where more than one of its rounds is half as slow
again as their median, the disk is busy, and nothing is said.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness import DEBIAN_PYTHON, Worker, medians, refuse
from torch_peer import todays_python


def dd(*arguments):
    """Seconds, as dd counts them."""
    done = subprocess.run(["dd", *arguments], stderr=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, "LC_ALL": "C"})
    return float(re.search(r"copied, ([0-9.e+-]+) s", done.stderr)[1])


def evict(*paths):
    """Takes files out of the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure(arguments, directory):
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(Worker(arguments.program, arguments.mib))
        peers = {name: stack.enter_context(Worker(python, "-m", "peers.torch_save", arguments.mib))
                 for name, python in (("Debian's torch", DEBIAN_PYTHON),
                                      ("today's torch", todays_python()))}
        rounds = [one_round(arguments, f"{directory}/{number}", ours, peers)
                  for number in range(arguments.rounds)]
    # The first asynchronous save takes memory that the later ones use again.
    for one in rounds[:1]:
        del one["async call"]
    return rounds


def one_round(arguments, directory, ours, peers):
    # New names each time: to delete a gibibyte keeps the disk busy for seconds.
    os.mkdir(directory)
    blocks = arguments.mib // 8
    limit, own = f"{directory}/dd", f"{directory}/ckpt"
    data = f"{own}.data-00000-of-00001"
    saved = {name: f"{directory}/torch{index}" for index, name in enumerate(peers)}
    one = {}
    one["dd write"] = dd("if=/dev/zero", f"of={limit}", "bs=8M", f"count={blocks}",
                         "oflag=direct", "conv=fsync")
    one["cohort write"] = ours(f"save {own}")
    for name, torch in peers.items():
        one[f"{name} write"] = torch(f"save {saved[name]}")
    evict(limit, data, *saved.values())
    one["dd read"] = dd(f"if={limit}", "of=/dev/null", "bs=8M", "iflag=direct")
    one["cohort read"] = ours(f"load {own}")
    for name, torch in peers.items():
        one[f"{name} read"] = torch(f"load {saved[name]}")
    one["copy"] = ours("copy")
    one["step alone"] = ours("steps 40")
    one["async call"] = ours(f"stall {own}-async")
    one["step beside the writer"] = ours("steps 20")
    ours("wait")
    return one


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if arguments.mib % 16 or arguments.mib < 16 or arguments.rounds < 2:
        parser.error("--mib must be a multiple of 16, --rounds at least 2")
    with tempfile.TemporaryDirectory(dir=arguments.directory or os.getcwd()) as directory:
        rounds = measure(arguments, directory)

    names = list(rounds[-1])
    median = medians(rounds)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps({"rounds": rounds, "medians": median}))
    for limit in ("dd write", "dd read"):
        times = sorted(one[limit] for one in rounds)
        if times[-2] > 1.5 * median[limit]:
            refuse(f"the disk is busy: '{limit}' took {times[0]:.2f} to {times[-1]:.2f} s")
    gib = arguments.mib / 1024
    print(f"{gib:g} GiB, medians of {arguments.rounds} rounds")
    for name in [name for name in names if name.endswith((" write", " read"))]:
        limit = median["dd write" if "write" in name else "dd read"]
        print(f"{name:24} {median[name]:7.3f} s  {gib / median[name]:6.2f} GiB/s  "
              f"{limit / median[name]:5.2f} of dd")
    print(f"{'copying the values':24} {median['copy'] * 1e3:7.1f} ms")
    print(f"{'asynchronous save, call':24} {median['async call'] * 1e3:7.1f} ms  "
          f"{median['async call'] / median['copy']:.2f} of the copy")
    print(f"{'step alone':24} {median['step alone'] * 1e3:7.1f} ms")
    print(f"{'step beside the writer':24} {median['step beside the writer'] * 1e3:7.1f} ms  "
          f"{median['step beside the writer'] / median['step alone']:.2f} of it alone")


main()
