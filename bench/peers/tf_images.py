"""tf.data's turn of bench/images.py.

Usage: python3 -m peers.tf_images DIRECTORY, with commands on stdin:
  read WORK,LOOP SECONDS   processor seconds that a pass takes; LOOP: python or function (what loops)
  check WORK               number of pictures, and the sum of their numbers over that number
  version                  what this is
"""

import sys
import time
import warnings

import numpy as np
import tensorflow as tf

from peers import turns

BATCH, SIZE = 32, 224


def decode(path):
    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)


def make(directory, work):
    files = tf.data.Dataset.list_files(f"{directory}/*.jpg", shuffle=False)

    def augment(counter, path):
        seed = tf.stack([counter, tf.constant(1, tf.int64)])
        part = tf.image.stateless_random_crop(decode(path), (SIZE, SIZE, 3), seed)
        part = tf.image.stateless_random_flip_left_right(part, seed + 1)
        return tf.image.stateless_random_brightness(part, 0.2, seed + 2)

    def resize(path):
        return tf.image.resize(decode(path), (SIZE, SIZE), antialias=work == "antialiased")

    if work == "augmented":
        dataset = tf.data.Dataset.zip((tf.data.Dataset.counter(), files)).map(augment)
    else:
        dataset = files.map(decode if work == "decoded" else resize)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.threading.max_intra_op_parallelism = 1
    return dataset.batch(BATCH).with_options(options)


class Passes:
    """Reads whole passes of a pipeline."""

    def __init__(self, dataset, in_function):
        self.dataset = dataset
        self.one = tf.function(self._loop) if in_function else self._loop

    def _loop(self):
        for _ in self.dataset:
            pass

    def run(self, count):
        start = time.process_time()
        for _ in range(count):
            self.one()
        return time.process_time() - start


def check(dataset):
    count, total = 0, 0.0
    for batch in dataset:
        count += len(batch)
        total += float(np.sum(batch.numpy(), dtype=np.float64))
    return f"{count} {total / count!r}"


def main():
    directory, = sys.argv[1:]
    tf.get_logger().setLevel("ERROR")
    warnings.filterwarnings("ignore")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    passes = {}
    for line in sys.stdin:
        command, *words = line.split()
        if command == "check":
            answer = check(make(directory, *words))
        elif command == "read":
            key, seconds = words
            if key not in passes:
                work, loop = key.split(",")
                passes[key] = Passes(make(directory, work), loop == "function")
            answer = turns.time_steps(passes[key].run, float(seconds))
        else:
            answer = f"TensorFlow {tf.__version__}"
        print(answer, flush=True)


main()
