"""Columns of the cases, and how the C++ side and this one write them to each other."""

import dataclasses

import numpy as np


@dataclasses.dataclass
class Column:
    """A column of a dataset: one entry a row. Ragged: an entry is a list, empty where it is missing."""
    dtype: str  # "float32", "int64", "string"
    entries: list
    ragged: bool = False
    shape: tuple = ()  # of one row; dense columns only

    def text(self):
        """As JSON: every value is text, so that NaN, infinities, 64 bits and any bytes get through."""
        rows = self.entries if self.ragged or self.shape else [[entry] for entry in self.entries]
        flat = [_to_text(self.dtype, value) for row in rows for value in np.ravel(
            np.array(row, dtype=object))]
        written = {"dtype": self.dtype, "values": flat}
        if self.ragged:
            return written | {"lengths": [len(row) for row in rows]}
        return written | {"shape": [len(self.entries), *self.shape]}


def from_text(written):
    """The Column that text() of either side wrote."""
    values = [_from_text(written["dtype"], value) for value in written["values"]]
    if "lengths" in written:
        ends = np.cumsum([0, *written["lengths"]])
        rows = [values[begin:end] for begin, end in zip(ends[:-1], ends[1:])]
        return Column(written["dtype"], rows, ragged=True)
    rows, *shape = written["shape"]
    each = int(np.prod(shape, dtype=int))
    entries = [values[row * each:(row + 1) * each] for row in range(rows)]
    return Column(written["dtype"], entries if shape else [entry[0] for entry in entries],
                  shape=tuple(shape))


def _to_text(dtype, value):
    if dtype == "string":
        return (value if isinstance(value, bytes) else value.encode()).hex()
    if dtype == "int64":
        return str(int(value))
    return repr(float(np.float32(value)))


def _from_text(dtype, text):
    if dtype == "string":
        return bytes.fromhex(text)
    return int(text) if dtype == "int64" else float(np.float32(text))


def floats(*entries):
    return Column("float32", list(entries))


def ints(*entries):
    return Column("int64", list(entries))


def strings(*entries):
    return Column("string", list(entries))


def pairs(dtype, *entries):
    """A dense column with several values a row."""
    return Column(dtype, [list(entry) for entry in entries], shape=(len(entries[0]),))


def ragged(dtype, *entries):
    return Column(dtype, [list(entry) for entry in entries], ragged=True)
