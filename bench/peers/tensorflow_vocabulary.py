"""What bench_vocabulary measures, of TensorFlow's table: tensorflow_vocabulary.py FILE, whose lines that program made."""

import resource
import sys
import time

import numpy
import tensorflow as tf


def word(i):
    return b"%c%x" % (97 + i % 10, i * 2654435761 % (1 << 36))


def main(path):
    start, cpu_start = time.perf_counter(), time.process_time()
    table = tf.lookup.StaticHashTable(tf.lookup.TextFileInitializer(
        path, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER), -1)
    size = int(table.size())
    opened, cpu_opened = time.perf_counter() - start, time.process_time() - cpu_start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    numbers = numpy.random.default_rng(1).integers(0, size, 2_000_000)
    words = tf.constant([word(int(n)) + (b"?" if i % 10 == 0 else b"") for i, n in enumerate(numbers)])
    times = []
    for _ in range(6):
        start = time.process_time()
        found = table.lookup(words)
        times.append(time.process_time() - start)
    took = min(times[1:])
    numbers[::10] = -1
    assert (found.numpy() == numbers).all()
    print(f"TensorFlow {tf.__version__}: {opened:.2f} s ({cpu_opened:.2f}) until it is open, {memory:.0f} MiB, "
          f"{took / len(numbers) * 1e9:.1f} ns a lookup: {len(numbers) / took / 1e6:.2f} million/s")


main(sys.argv[1])
