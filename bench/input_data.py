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
TABLE_FILES = ["table-0.csv", "table-1.csv"]
TABLE_ROWS = 60_000
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
    for name in TABLE_FILES:
        write_table(directory / name, TABLE_ROWS // len(TABLE_FILES), numbers)


def write_table(path, rows, numbers):
    """Columns of all types, a twentieth of the values missing; their names are in order."""
    def or_missing(value):
        return "" if numbers.random() < 0.05 else value

    jobs = [f"job {number}" for number in range(40)] + ['"clerk, ""senior"""']
    lines = ["age,balance,city,day,employer,flag,income,job"]
    for _ in range(rows):
        fields = [numbers.randint(18, 90), f"{numbers.gauss(0, 1000):.2f}",
                  f"city {numbers.randint(0, 300)}", numbers.randint(1 << 33, 1 << 40),
                  f"employer {numbers.randint(0, 9999)} of many", numbers.randint(0, 1),
                  f"{numbers.lognormvariate(10, 1):.1f}", numbers.choice(jobs)]
        lines.append(",".join(str(or_missing(field)) for field in fields))
    path.write_text("\n".join(lines) + "\n")


def read_images(directory):
    """(bytes of the images, bytes of the labels)."""
    directory = pathlib.Path(directory)
    return (directory.joinpath("images.u8").read_bytes(),
            directory.joinpath("labels.u8").read_bytes())


def read_words(directory, name="words.txt"):
    return pathlib.Path(directory, name).read_text().splitlines()
