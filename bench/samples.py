"""The samples that every side of the step benchmark trains on, as files of plain numbers.

NAME.shape holds the inputs' dtype and shape, NAME.inputs and NAME.labels (int64) the numbers.
Batches of inputs come around after INPUTS, of labels after LABELS: no model can learn them by heart,
and gradients never fade.
"""

import array
import math
import pathlib
import random

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
    "mlp": ("float32", (784,), 64),
    "embedding": ("int64", (10,), 512),
    "lstm": ("float32", (32, 64), 64),
    "resnet": ("float32", (32, 32, 3), 32),
}


def write(directory):
    """Writes the samples of all models; the same ones on every run."""
    for name, (dtype, shape, batch) in SAMPLES.items():
        numbers = random.Random(name)
        count = INPUTS * batch
        size = count * math.prod(shape)
        if dtype == "float32":
            inputs = array.array("f", (numbers.random() for _ in range(size)))
        else:
            inputs = array.array("q", (numbers.randrange(VOCABULARY) for _ in range(size)))
        labels = array.array("q", (numbers.randrange(CLASSES) for _ in range(count)))
        path = pathlib.Path(directory) / name
        path.with_suffix(".shape").write_text(" ".join(map(str, (dtype, count, *shape))))
        path.with_suffix(".inputs").write_bytes(inputs.tobytes())
        path.with_suffix(".labels").write_bytes(labels.tobytes())


def read(directory, name):
    """(bytes of the inputs, dtype, shape, bytes of the labels)."""
    path = pathlib.Path(directory) / name
    dtype, *shape = path.with_suffix(".shape").read_text().split()
    return (path.with_suffix(".inputs").read_bytes(), dtype, tuple(map(int, shape)),
            path.with_suffix(".labels").read_bytes())


def ranges(batch):
    """For each batch that trains, where its inputs and its labels lie among the samples."""
    for index in range(BATCHES):
        first_input, first_label = index % INPUTS * batch, index % LABELS * batch
        yield (slice(first_input, first_input + batch), slice(first_label, first_label + batch))
