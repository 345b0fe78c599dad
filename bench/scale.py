"""What a step costs each worker of a group that trains in step, and a model of it.

Measures groups of 2, 4 and 8 processes: processor time of all threads of a task, messages and bytes,
a rank and step, of a step that applies given gradients (bench/scale.cc). What the forward and the
backward pass cost does not depend on the group. Messages and bytes follow from the algorithms;
processor time is a sum of prices, which are fitted to the groups of 2 and 8 alone, so that those
of 4 are predicted. Ends with 1 where a prediction is off by more than a quarter.

Processor time needs no free machine, but neighbours make every instruction dearer: take the prices
of a machine that does nothing else.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
from typing import NamedTuple

from harness import EX_SOFTWARE

MOST_ERROR = 0.25
RANKS = (2, 4, 8)
FITTED = (2, 8)
SMALL = 16 << 10   # up to here every task sends all of its values to every other
MESSAGE = 2 << 20  # a longer one goes in several
PACK = 1 << 20
FINGERPRINT = 72  # and room for a few values
BACKENDS = {"memory": "shared memory", "calls": "calls over TCP", "gloo": "Gloo over TCP"}


class Model(NamedTuple):
    """The gradients of a step: so many variables of so many bytes each."""

    title: str
    variables: int
    bytes: int
    steps: int  # of a round of the measurement over a network; ten times as many elsewhere

    def packs(self):
        """The bytes of each pack: variables until it is full, and two numbers for each."""
        each = max(1, math.ceil(PACK / self.bytes))
        sizes = [min(each, self.variables - first) for first in range(0, self.variables, each)]
        return [count * (self.bytes + 2 * 4) for count in sizes]

    def total(self):
        return self.variables * self.bytes


MODELS = (Model("4 KB", 1, 4000, 100), Model("1.4 MB", 22, 64 << 10, 20),
          Model("12 MB", 48, 256 << 10, 4))


def flat_traffic(model, ranks):
    """(messages, bytes) that each of so many ranks sends in a step, where each speaks to each."""
    others = ranks - 1
    messages, sent = others, others * FINGERPRINT  # the promise of the step's plan
    for pack in model.packs():
        if pack <= SMALL:
            messages += others
            sent += others * pack
        else:  # everybody's part to its owner, then the sums to all
            part = pack / ranks
            messages += 2 * others * math.ceil(part / MESSAGE)
            sent += 2 * others * part
    return messages, sent


def memory_traffic(model, ranks):
    """Of shared memory: calls, and bytes that are brought. A call looks at every rank's seat."""
    del ranks
    return len(model.packs()), sum(model.packs())


def tree_traffic(model, ranks):
    """Recursive halving and doubling: log2 of the ranks as many messages, the same bytes. Not built."""
    levels = math.ceil(math.log2(ranks))
    messages, sent = levels, levels * FINGERPRINT
    for pack in model.packs():
        messages += 2 * levels
        sent += 2 * pack * (ranks - 1) / ranks
    return messages, sent


def quantities(backend, model, ranks):
    """What prices are for, each in microseconds of processor time."""
    if backend == "memory":
        calls, brought = memory_traffic(model, ranks)
        return calls * ranks, brought, brought * ranks
    return 1, *flat_traffic(model, ranks)


PRICED = {"memory": ("a rank's part in a call", "a byte", "a byte and rank"),
          "calls": ("a step", "a message", "a byte"), "gloo": ("a step", "a message", "a byte")}


def cost(prices, amounts):
    return sum(price * amount for price, amount in zip(prices, amounts))


def solve(matrix, right):
    """The solution of a small system of linear equations."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    for i in range(size):
        best = max(range(i, size), key=lambda r: abs(rows[r][i]))
        rows[i], rows[best] = rows[best], rows[i]
        for r in range(size):
            if r != i:
                factor = rows[r][i] / rows[i][i]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(points):
    """Prices with the least relative errors; points: [(amounts, us)]. None is negative."""
    number = len(points[0][0])
    kept = list(range(number))
    while True:
        lines = [[amounts[k] / us for k in kept] for amounts, us in points]
        normal = [[sum(line[i] * line[j] for line in lines) for j in range(len(kept))]
                  for i in range(len(kept))]
        found = solve(normal, [sum(line[i] for line in lines) for i in range(len(kept))])
        if min(found) >= 0:
            return [found[kept.index(k)] if k in kept else 0.0 for k in range(number)]
        kept.remove(kept[found.index(min(found))])


def measure(program, backend, ranks, model, rounds):
    """(us, messages, bytes): of so many runs the one that took the least time."""
    steps = model.steps * (1 if backend in ("calls", "gloo") else 10)
    command = [program, backend, ranks, model.variables, model.bytes, steps]
    runs = []
    for _ in range(rounds):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(EX_SOFTWARE)
        runs.append(tuple(map(float, done.stdout.split())))
    return min(runs)


def compare(predicted, measured):
    """The columns of a figure, and whether it was predicted."""
    error = predicted / measured - 1
    return f"{measured:12,.0f} {predicted:12,.0f} {error:+6.0%}", abs(error) <= MOST_ERROR


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--only", help="backends, comma-separated", default=",".join(BACKENDS))
    parser.add_argument("--runs", type=int, default=3, help="of each group, of which the best counts")
    parser.add_argument("--json", help="where the measured figures go")
    options = parser.parse_args()
    backends = options.only.split(",")
    alone = {model: measure(options.program, "none", 1, model, options.runs)[0] for model in MODELS}
    print("one task alone, us a step:",
          ", ".join(f"{model.title} {us:,.0f}" for model, us in alone.items()), flush=True)
    measured, fine = {}, True
    for backend in backends:
        costs = {(model, ranks): measure(options.program, backend, ranks, model, options.runs)
                 for model in MODELS for ranks in RANKS}
        fine = report(backend, costs, alone) and fine
        measured[backend] = [[model.title, ranks, *one] for (model, ranks), one in costs.items()]
        if options.json:
            pathlib.Path(options.json).write_text(json.dumps(
                {"alone": [[model.title, us] for model, us in alone.items()], **measured}, indent=1))
    sys.exit(0 if fine else 1)


def report(backend, costs, alone):
    """Prints a backend's tables; whether all was predicted."""
    points = [(quantities(backend, model, ranks), max(1.0, us - alone[model]))
              for (model, ranks), (us, _, _) in costs.items() if ranks in FITTED]
    prices = fit(points)
    print(f"\n{BACKENDS[backend]}, us:", ", ".join(
        f"{what} {price:.4g}" for what, price in zip(PRICED[backend], prices)))
    print(f"{'gradients':10} {'ranks':>5} " + " ".join(
        f"{title:>12} {'predicted':>12} {'':6}" for title in ("us", "messages", "bytes")).rstrip())
    fine = True
    for (model, ranks), (us, messages, sent) in costs.items():
        traffic = (memory_traffic if backend == "memory" else flat_traffic)(model, ranks)
        predicted = (alone[model] + cost(prices, quantities(backend, model, ranks)), *traffic)
        columns = [compare(*pair) for pair in zip(predicted, (us, messages, sent))]
        fine = fine and all(is_near for _, is_near in columns)
        print(f"{model.title:10} {ranks:5} " + " ".join(text for text, _ in columns), flush=True)
    if backend != "memory":
        extrapolate(prices)
    return fine


def extrapolate(prices):
    """What larger groups would cost, of 45 MB of gradients (ResNet-18)."""
    large = Model("45 MB", 172, 256 << 10, 1)
    for ranks in (100, 1000, 10000):
        for title, traffic in (("each to each", flat_traffic), ("halving, doubling", tree_traffic)):
            messages, sent = traffic(large, ranks)
            print(f"{large.title}, {ranks:6,} hosts, {title:18} {messages:12,.0f} messages, "
                  f"{sent / 1e6:8,.1f} MB, {cost(prices, (1, messages, sent)) / 1e3:12,.1f} ms")


if __name__ == "__main__":
    main()
