"""Distributed datasets give each replica the rows that TensorFlow's own splitting (the guides' rule,
its legacy rebatch) and auto-sharding give it, on pipelines made at random.
"""

import random

import pytest
import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute as tf_distribute

from test_pipelines import other_numbers, random_range

PIPELINES = 50
POLICIES = {"OFF": tf.data.experimental.AutoShardPolicy.OFF,
            "AUTO": tf.data.experimental.AutoShardPolicy.AUTO,
            "FILE": tf.data.experimental.AutoShardPolicy.FILE,
            "DATA": tf.data.experimental.AutoShardPolicy.DATA}


def random_rows(rng, depth):
    """A pipeline of scalars, or of tuples of them."""
    if depth == 0:
        return random_range(rng)
    source = random_rows(rng, depth - 1)
    op = rng.choice(["shard", "take", "skip", "repeat", "zip", "concatenate"])
    if op == "shard":
        n = rng.randint(1, 3)
        return {"op": op, "n": n, "i": rng.randrange(n), "source": source}
    if op in ("take", "skip", "repeat"):
        return {"op": op, "n": rng.choice([1, 2, 3] if op == "repeat" else [2, 3, 20]),
                "source": source}
    if op == "zip":
        return {"op": op, "sources": [source, random_rows(rng, rng.randrange(depth))]}
    return {"op": op, "sources": [source, other_numbers(source, rng)]}


def write_files(rng, folder, count):
    paths = []
    number = 0
    for i in range(count):
        paths.append(str(folder / f"{i}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(rng.randint(0, 9)):
                writer.write(str(number).encode())
                number += 1
    return paths


def random_case(rng, folder):
    workers, replicas = rng.choice([(1, 1), (1, 2), (1, 3), (1, 5), (2, 1), (2, 2), (3, 1), (3, 2)])
    policy = rng.choice(sorted(POLICIES))
    if policy == "FILE" or rng.random() < 0.3:
        rows = {"op": "records", "paths": write_files(rng, folder, workers + rng.randint(0, 3))}
        if rng.random() < 0.5:
            rows = {"op": "repeat", "n": 2, "source": rows}
    else:
        rows = random_rows(rng, rng.randint(0, 3))
    batch = {"op": "batch", "n": rng.randint(1, 9), "drop_remainder": rng.random() < 0.3,
             "source": rows}
    return {"pipeline": batch, "policy": policy, "workers": workers,
            "replicas_per_worker": replicas}


def build(node):
    op = node["op"]
    if op == "range":
        return tf.data.Dataset.range(node["start"], node["stop"], node["step"])
    if op == "records":
        return tf.data.TFRecordDataset(node["paths"]).map(
            lambda record: tf.strings.to_number(record, tf.int64))
    if op == "zip":
        return tf.data.Dataset.zip(tuple(build(source) for source in node["sources"]))
    if op == "concatenate":
        first, second = node["sources"]
        return build(first).concatenate(build(second))
    source = build(node["source"])
    if op == "batch":
        return source.batch(node["n"], drop_remainder=node["drop_remainder"])
    if op == "shard":
        return source.shard(node["n"], node["i"])
    return getattr(source, op)(node["n"])


def to_json(element):
    if isinstance(element, tuple):
        return [to_json(member) for member in element]
    return {"shape": list(element.shape), "values": element.numpy().reshape(-1).tolist()}


def empty_of(spec):
    if isinstance(spec, tuple):
        return [empty_of(member) for member in spec]
    return {"shape": [0], "values": []}


def steps_of_tensorflow(case):
    """What the workers' replicas get, step by step, until no worker has data."""
    workers, replicas = case["workers"], case["replicas_per_worker"]
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = POLICIES[case["policy"]]
    streams = []
    for worker in range(workers):
        dataset = build(case["pipeline"]).with_options(options)
        spec = dataset.element_spec
        if workers * replicas > 1:
            dataset = tf_distribute._LegacyRebatchDataset(dataset, workers * replicas)
        if workers > 1:
            dataset = tf_distribute._AutoShardDataset(dataset, workers, worker, workers * replicas)
        streams.append([to_json(element) for element in dataset])
    steps = []
    while any(streams):
        step = []
        for stream in streams:
            taken, stream[:] = stream[:replicas], stream[replicas:]
            step += taken + [empty_of(spec)] * (replicas - len(taken))
        steps.append(step)
    return steps


@pytest.mark.parametrize("seed", range(PIPELINES))
def test_replicas_get_the_same_rows(probe, tmp_path, seed):
    case = random_case(random.Random(seed), tmp_path)
    assert probe("distributed", case) == {"steps": steps_of_tensorflow(case), "error": None}


def test_the_cases_cover_their_kinds(tmp_path):
    """Cases of few kinds, or without data, would prove little."""
    kinds, long, uneven = set(), 0, 0
    for seed in range(PIPELINES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        case = random_case(random.Random(seed), folder)
        kinds.add((case["policy"], case["workers"] > 1, case["replicas_per_worker"] > 1))
        steps = steps_of_tensorflow(case)
        long += len(steps) >= 3
        uneven += any(str(piece).count("'shape': [0") for step in steps for piece in step)
    assert len(kinds) >= 12
    assert long >= 25
    assert uneven >= 15


@pytest.mark.parametrize("seed", range(20))
def test_global_batches_are_divided_alike(probe, seed):
    rng = random.Random(seed)
    batch, workers, replicas = rng.randint(0, 40), rng.randint(1, 5), rng.randint(1, 5)
    expected = [tf_distribute.batch_sizes_for_worker(batch, workers, replicas, worker)
                .numpy().tolist() for worker in range(workers)]
    assert probe("divide_batch", {"global_batch_size": batch, "workers": workers,
                                  "replicas_per_worker": replicas}) == {"sizes": expected}
