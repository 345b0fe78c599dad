"""Two hosts for benchmarks: network namespaces of this machine, joined by a pair of veth devices."""

import contextlib
import os
import subprocess
import sys

from harness import EX_SOFTWARE

DEVICE = "net0"
# What may leave at once: the bytes of a hundredth of a second.
BURSTS_PER_SECOND = 100


def address(rank):
    return f"10.78.0.{rank + 1}"


class Hosts:
    """Made on entry, which takes root, and gone on exit with all that runs on them."""

    def __init__(self):
        self.names = [f"cohort-bench-{os.getpid()}-{rank}" for rank in range(2)]

    def __enter__(self):
        if os.geteuid() != 0:
            sys.exit("hosts of their own take root")
        for name in self.names:
            _run("ip", "netns", "add", name)
        first, second = self.names
        _run("ip", "link", "add", DEVICE, "netns", first, "type", "veth",
             "peer", "name", DEVICE, "netns", second)
        for rank, name in enumerate(self.names):
            _run("ip", "-n", name, "addr", "add", f"{address(rank)}/24", "dev", DEVICE)
            for device in (DEVICE, "lo"):
                _run("ip", "-n", name, "link", "set", device, "up")
        return self

    def limit(self, bits_per_second):
        """What each host may send from here on; None: as much as it can."""
        for name in self.names:
            root = ["dev", DEVICE, "root"]
            with contextlib.suppress(subprocess.CalledProcessError):  # there was no limit
                _run("tc", "-n", name, "qdisc", "del", *root, stderr=subprocess.DEVNULL)
            if bits_per_second is not None:
                _run("tc", "-n", name, "qdisc", "add", *root, "tbf", "rate", f"{bits_per_second}bit",
                     "burst", str(bits_per_second // 8 // BURSTS_PER_SECOND), "latency", "400ms")

    def __exit__(self, *_):
        for name in self.names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _run("ip", "netns", "del", name)


def _run(*command, **options):
    try:
        subprocess.run(command, check=True, **options)
    except FileNotFoundError:
        print(f"{command[0]} (iproute2) is not there", file=sys.stderr)
        sys.exit(EX_SOFTWARE)
