"""tf.data's turn of bench/input.py.

Usage: python3 -m peers.tf_data DIRECTORY THREADS, with commands on stdin:
  prepare                      writes the TFRecord files
  read WORK VARIANT SECONDS    seconds that a pass takes; VARIANT: plain or parallel (maps and reads
                               on several threads, prefetch), then ,python or ,function (what loops)
  check WORK VARIANT           number of elements, and a checksum of them in any order
  version                      what this is
"""

import pathlib
import sys
import time
import warnings

import numpy as np
import tensorflow as tf

import input_data
from peers import turns
from peers.checksum import Checksum

FEATURES = {"image": tf.io.FixedLenFeature([], tf.string),
            "label": tf.io.FixedLenFeature([], tf.int64)}


class Pipelines:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        images, labels = input_data.read_images(directory)
        self.images = np.frombuffer(images, np.uint8).reshape(-1, *input_data.IMAGE_SHAPE)
        self.labels = np.frombuffer(labels, np.uint8)
        self.words = tf.constant(input_data.read_words(directory))
        self.lookup = tf.keras.layers.StringLookup(
            vocabulary=input_data.read_words(directory, "vocabulary.txt"))
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def prepare(self):
        half = len(self.images) // 2
        for name, part in zip(input_data.EXAMPLE_FILES, (slice(half), slice(half, None))):
            with tf.io.TFRecordWriter(str(self.directory / name)) as writer:
                for image, label in zip(self.images[part], self.labels[part]):
                    writer.write(example(image.tobytes(), label))
        numbers = np.random.default_rng(1)
        with tf.io.TFRecordWriter(str(self.directory / input_data.RECORDS_FILE)) as writer:
            for _ in range(input_data.RECORDS):
                writer.write(numbers.bytes(input_data.RECORD_BYTES))

    def make(self, work, parallel):
        dataset = getattr(self, work)(tf.data.AUTOTUNE if parallel else None)
        if parallel:
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
        if work == "distributed":
            dataset = self.strategy.experimental_distribute_dataset(dataset)
        return dataset

    def scalar_map(self, calls):
        numbers = tf.data.Dataset.range(input_data.NUMBERS)
        return numbers.map(lambda x: 2 * x + 1, num_parallel_calls=calls).batch(256)

    def vector_map(self, calls):
        numbers = tf.data.Dataset.range(input_data.NUMBERS)
        return numbers.batch(256).map(lambda x: 2 * x + 1, num_parallel_calls=calls)

    def images_and_labels(self):
        return tf.data.Dataset.from_tensor_slices((self.images, self.labels))

    def shuffled(self, _):
        return self.images_and_labels().shuffle(10_000, seed=1).batch(128)

    def distributed(self, _):
        return self.images_and_labels().batch(256)

    def lookups(self, calls):
        words = tf.data.Dataset.from_tensor_slices(self.words).batch(256)
        return words.map(self.lookup, num_parallel_calls=calls)

    def records(self, calls):
        return self._files([input_data.RECORDS_FILE], calls).batch(16)

    def small_records(self, calls):
        return self._files(input_data.EXAMPLE_FILES, calls).batch(256)

    def examples(self, calls):
        def parse(records):
            features = tf.io.parse_example(records, FEATURES)
            return features["image"], features["label"]

        records = self._files(input_data.EXAMPLE_FILES, calls).shuffle(10_000, seed=1)
        return records.batch(128).map(parse, num_parallel_calls=calls)

    def tables(self, calls):
        return tf.data.experimental.make_csv_dataset(
            str(self.directory / "table-*.csv"), 128, num_epochs=1, shuffle_seed=1,
            prefetch_buffer_size=0, num_parallel_reads=calls)

    def _files(self, names, calls):
        return tf.data.TFRecordDataset([str(self.directory / name) for name in names],
                                       num_parallel_reads=calls)


def example(image, label):
    return tf.train.Example(features=tf.train.Features(feature={
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    })).SerializeToString()


class Passes:
    """Reads whole passes of a pipeline."""

    def __init__(self, dataset, in_function):
        self.dataset = dataset
        self.one = tf.function(self._loop) if in_function else self._loop

    def _loop(self):
        for _ in self.dataset:
            pass

    def run(self, count):
        start = time.perf_counter()
        for _ in range(count):
            self.one()
        return time.perf_counter() - start


def check(pipelines, work, variant):
    checksum = Checksum()
    for batch in pipelines.make(work, "parallel" in variant):
        pieces = (zip(*map(pipelines.strategy.experimental_local_results, batch))
                  if work == "distributed" else [tf.nest.flatten(batch)])
        for piece in pieces:
            checksum.add([leaf.numpy() for leaf in piece])
    return checksum


def main():
    directory, threads = sys.argv[1:]
    tf.get_logger().setLevel("ERROR")
    warnings.filterwarnings("ignore")
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    tf.config.threading.set_inter_op_parallelism_threads(int(threads))
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
    pipelines = Pipelines(directory)
    passes = {}
    for line in sys.stdin:
        command, *words = line.split()
        if command == "prepare":
            pipelines.prepare()
            answer = 0
        elif command == "check":
            checksum = check(pipelines, *words)
            answer = f"{checksum.elements} {checksum.value}"
        elif command == "read":
            work, variant, seconds = words
            key = (work, variant)
            if key not in passes:
                kind, loop = variant.split(",")
                passes[key] = Passes(pipelines.make(work, kind == "parallel"), loop == "function")
            answer = turns.time_steps(passes[key].run, float(seconds))
        else:
            answer = f"TensorFlow {tf.__version__}"
        print(answer, flush=True)


main()
