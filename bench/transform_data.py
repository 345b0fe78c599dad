"""The columns that Cohort and its peer analyze in bench/transform.py: files of plain values.

Usage: python3 -m transform_data WORK DIRECTORY ROWS DISTINCT
"""

import pathlib
import sys

import numpy as np

NUMBER_COLUMNS = 10
TOKEN_BYTES = 8
# What the sketch of quantiles may err by, and how many buckets are asked for.
EPSILON, BUCKETS = 0.01, 100


def number_file(directory, column):
    return pathlib.Path(directory, f"numbers-{column}.f32")


def token_file(directory):
    return pathlib.Path(directory, "tokens.bytes")


def write_numbers(directory, rows):
    """float32, little endian, one file a column."""
    for column in range(NUMBER_COLUMNS):
        numbers = np.random.default_rng(column).normal(column, 1 + column, rows)
        numbers.astype("<f4").tofile(number_file(directory, column))


def write_tokens(directory, rows, distinct):
    """Tokens of TOKEN_BYTES each: every one of `distinct` occurs, a few of them often."""
    numbers = np.random.default_rng(7)
    ids = np.concatenate([np.arange(distinct),
                          (distinct * numbers.random(max(rows - distinct, 0)) ** 3).astype(np.int64)])
    ids = numbers.permutation(ids)[:rows]
    digits = (ids[:, None] // 10 ** np.arange(TOKEN_BYTES - 2, -1, -1)) % 10 + ord("0")
    tokens = np.concatenate([np.full((rows, 1), ord("w")), digits], 1).astype(np.uint8)
    tokens.tofile(token_file(directory))


def main():
    work, directory, rows, distinct = sys.argv[1:]
    if work == "vocabulary":
        write_tokens(directory, int(rows), int(distinct))
    else:
        write_numbers(directory, int(rows))


if __name__ == "__main__":
    main()
