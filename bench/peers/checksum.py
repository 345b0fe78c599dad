"""The checksum of bench/checksum.h, of what a pipeline yields in whatever order."""

import numpy as np


class Checksum:
    def __init__(self):
        self.elements = 0
        self.value = np.uint64(0)

    def add(self, leaves):
        """`leaves`: the arrays of a batch, integers or strings (as bytes objects)."""
        rows = len(leaves[0])
        if rows == 0:
            return
        sums = np.zeros(rows, np.uint64)
        places = np.zeros(rows, np.uint64)
        with np.errstate(over="ignore"):
            for leaf in leaves:
                if leaf.dtype == object:
                    for row, text in enumerate(leaf):
                        numbers = np.frombuffer(text, np.uint8).astype(np.uint64)
                        numbers = np.append(numbers, np.uint64(len(text)))
                        sums[row] += (numbers * weights(places[row], len(numbers))).sum()
                        places[row] += np.uint64(len(numbers))
                else:
                    numbers = leaf.reshape(rows, -1).astype(np.int64).astype(np.uint64)
                    columns = numbers.shape[1]
                    sums += (numbers * weights(places[:, None], columns)).sum(axis=1)
                    places += np.uint64(columns)
            self.value += mixed(sums).sum()
        self.elements += rows


def weights(first_places, count):
    places = first_places + np.arange(count, dtype=np.uint64)
    return (places + np.uint64(1)) * np.uint64(2654435761) | np.uint64(1)


def mixed(sums):
    return (sums ^ (sums >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
