"""The samples that every side of the step benchmark trains on, as files of plain numbers.

NAME.shape holds the inputs' dtype and shape and, in a second line, the labels' shape, NAME.inputs and
NAME.labels (int64) the numbers. Several inputs of a model are columns of one array (COLUMNS).
Batches of inputs come around after INPUTS, of labels after LABELS: no model can learn them by heart,
and gradients never fade.
"""

import array
import math
import pathlib
import random
from typing import NamedTuple

INPUTS = 4
LABELS = 3
BATCHES = INPUTS * LABELS
# Of so many first steps the sides' losses are compared; as Samples::kFirstSteps.
FIRST_STEPS = 6
CLASSES = 10
VOCABULARY = 100_000

# Shapes of one sample; the largest global batch.
SAMPLES = {
    "cnn": ("float32", (28, 28, 1), 128),
    "mlp": ("float32", (784,), 256),
    "embedding": ("int64", (10,), 512),
    "lstm": ("float32", (32, 64), 64),
    "resnet": ("float32", (32, 32, 3), 32),
    "densenet": ("float32", (32, 32, 3), 32),
    "bert": ("int64", (276,), 16),
    "ncf": ("int64", (2,), 512),
    "nmt": ("int64", (41,), 64),
    "transformer": ("int64", (41,), 64),
}
# The shapes of a sample's labels; of other models it is ().
LABELS_SHAPES = {"bert": (20,), "ncf": (1,), "nmt": (21,), "transformer": (21,)}
# The ids of labels; of other models there are CLASSES.
LABEL_IDS = {"bert": 8192, "ncf": 2, "nmt": 4003, "transformer": 4003}


class Column(NamedTuple):
    """An input of ids below `ids`: so many numbers of a row. padded: a row's last ones are 0, as many as in its
    other padded inputs, and in its labels."""

    name: str
    count: int
    ids: int
    padded: bool = False


SENTENCES = (Column("source", 20, 4003, True), Column("target", 21, 4003, True))
COLUMNS = {
    "bert": (Column("tokens", 128, 8192, True), Column("segments", 128, 2), Column("places", 20, 64)),
    "ncf": (Column("users", 1, 6040), Column("items", 1, 3706)),
    "nmt": SENTENCES,
    "transformer": SENTENCES,
}
PADDED_LABELS = ("bert", "nmt", "transformer")


def write(directory):
    """Writes the samples of all models; the same ones on every run."""
    for name, (dtype, shape, batch) in SAMPLES.items():
        numbers = random.Random(name)
        count = INPUTS * batch
        size = count * math.prod(shape)
        labels_shape = LABELS_SHAPES.get(name, ())
        if name in COLUMNS:
            inputs, labels = columns(name, numbers, count)
        else:
            if dtype == "float32":
                inputs = array.array("f", (numbers.random() for _ in range(size)))
            else:
                inputs = array.array("q", (numbers.randrange(VOCABULARY) for _ in range(size)))
            labels = array.array("q", (numbers.randrange(CLASSES) for _ in range(count)))
        path = pathlib.Path(directory) / name
        path.with_suffix(".shape").write_text(
            "\n".join(" ".join(map(str, line)) for line in ((dtype, count, *shape), (count, *labels_shape))))
        path.with_suffix(".inputs").write_bytes(inputs.tobytes())
        path.with_suffix(".labels").write_bytes(labels.tobytes())


def columns(name, numbers, count):
    """The inputs and labels of so many rows of COLUMNS."""
    inputs, labels = array.array("q"), array.array("q")
    own_labels = Column("labels", LABELS_SHAPES[name][0], LABEL_IDS[name], name in PADDED_LABELS)
    for _ in range(count):
        length = numbers.uniform(0.5, 1)
        for column in (*COLUMNS[name], own_labels):
            filled = round(length * column.count) if column.padded else column.count
            least = 1 if column.padded else 0
            ids = [numbers.randrange(least, column.ids) for _ in range(filled)]
            target = labels if column is own_labels else inputs
            target.extend(ids + [0] * (column.count - filled))
    return inputs, labels


def read(directory, name):
    """(bytes of the inputs, dtype, shape, bytes of the labels)."""
    path = pathlib.Path(directory) / name
    dtype, *shape = path.with_suffix(".shape").read_text().splitlines()[0].split()
    return (path.with_suffix(".inputs").read_bytes(), dtype, tuple(map(int, shape)),
            path.with_suffix(".labels").read_bytes())


def ranges(batch):
    """For each batch that trains, where its inputs and its labels lie among the samples."""
    for index in range(BATCHES):
        first_input, first_label = index % INPUTS * batch, index % LABELS * batch
        yield (slice(first_input, first_input + batch), slice(first_label, first_label + batch))
