"""The data that the input benchmark's pipelines read: the same bytes for everybody, on every run.

images.u8 holds IMAGES images of 28x28 bytes, labels.u8 their labels; words.txt a word a line, most
of them from vocabulary.txt. The TFRecord files are written by TensorFlow (peers/tf_data.py).
"""

import pathlib
import random

NUMBERS = 100_000  # of the pipelines that begin with a range
IMAGES = 60_000
IMAGE_SHAPE = (28, 28)
CLASSES = 10
WORDS = 500_000
VOCABULARY = 10_000
KNOWN = 0.9  # of the words
EXAMPLE_FILES = ["examples-0.tfrecord", "examples-1.tfrecord"]
RECORDS_FILE = "records.tfrecord"
RECORDS = 2_000
RECORD_BYTES = 64 << 10


def write(directory):
    directory = pathlib.Path(directory)
    numbers = random.Random(1)
    size = IMAGE_SHAPE[0] * IMAGE_SHAPE[1]
    directory.joinpath("images.u8").write_bytes(numbers.randbytes(IMAGES * size))
    directory.joinpath("labels.u8").write_bytes(bytes(numbers.choices(range(CLASSES), k=IMAGES)))
    vocabulary = [f"word-{number:x}" for number in numbers.sample(range(1 << 32), VOCABULARY)]
    unknown = [f"other-{number}" for number in range(VOCABULARY)]
    known = round(WORDS * KNOWN)
    words = numbers.choices(vocabulary, k=known) + numbers.choices(unknown, k=WORDS - known)
    numbers.shuffle(words)
    directory.joinpath("vocabulary.txt").write_text("\n".join(vocabulary) + "\n")
    directory.joinpath("words.txt").write_text("\n".join(words) + "\n")


def read_images(directory):
    """(bytes of the images, bytes of the labels)."""
    directory = pathlib.Path(directory)
    return (directory.joinpath("images.u8").read_bytes(),
            directory.joinpath("labels.u8").read_bytes())


def read_words(directory, name="words.txt"):
    return pathlib.Path(directory, name).read_text().splitlines()
