"""Our input pipelines give tf.data's elements, one by one, on pipelines made at random."""

import copy
import random

import pytest
import tensorflow as tf

PIPELINES = 100


def random_range(rng):
    start = rng.randint(-3, 5)
    return {"op": "range", "start": start, "stop": start + rng.choice([0, 4, 9, 24, 40, 60]),
            "step": rng.choice([1, 1, 1, 2, 3])}


def other_numbers(node, rng):
    """A pipeline of the same operations over other ranges, so that the two can be concatenated."""
    if node["op"] == "range":
        return random_range(rng)
    node = copy.copy(node)
    if "source" in node:
        node["source"] = other_numbers(node["source"], rng)
    else:
        node["sources"] = [other_numbers(source, rng) for source in node["sources"]]
    return node


def random_pipeline(rng, depth):
    if depth == 0:
        return random_range(rng)
    op = rng.choice(["batch", "batch", "batch", "batch", "shard", "take", "skip", "repeat", "endless", "zip",
                     "concatenate"])
    source = random_pipeline(rng, depth - 1)
    if op == "batch":
        return {"op": op, "n": rng.randint(1, 5), "drop_remainder": rng.random() < 0.3,
                "source": source}
    if op == "shard":
        n = rng.randint(1, 4)
        return {"op": op, "n": n, "i": rng.randrange(n), "source": source}
    if op in ("take", "skip"):
        n = rng.choice([-1, 0, 1, 3, 7, 100] if op == "take" else [-1, 0, 1, 1, 2, 2, 3, 7])
        return {"op": op, "n": n, "source": source}
    if op == "repeat":
        return {"op": op, "n": rng.choice([0, 1, 2, 2, 3]), "source": source}
    if op == "endless":
        return {"op": "take", "n": rng.randint(1, 20),
                "source": {"op": "repeat", "n": -1, "source": source}}
    if op == "zip":
        return {"op": op, "sources": [source, random_pipeline(rng, rng.randrange(depth))]}
    return {"op": op, "sources": [source, other_numbers(source, rng)]}


def build(node):
    op = node["op"]
    if op == "range":
        return tf.data.Dataset.range(node["start"], node["stop"], node["step"])
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
    values = element.numpy()
    return {"shape": list(values.shape), "values": values.reshape(-1).tolist()}


def read_all(dataset):
    elements = []
    try:
        for element in dataset:
            elements.append(to_json(element))
    except tf.errors.InvalidArgumentError:  # batches of unlike shapes do not stack
        return {"elements": elements, "error": "INVALID_ARGUMENT"}
    return {"elements": elements, "error": None}


@pytest.mark.parametrize("seed", range(PIPELINES))
def test_follows_tf_data(probe, seed):
    rng = random.Random(seed)
    pipeline = random_pipeline(rng, rng.randint(1, 5))
    assert probe("pipeline", {"pipeline": pipeline}) == read_all(build(pipeline))


def test_the_pipelines_cover_their_operations():
    """A generator that only made empty pipelines would prove little."""
    used = set()
    long = failed = 0

    def visit(node):
        used.add(node["op"])
        for source in node.get("sources", [node["source"]] if "source" in node else []):
            visit(source)

    for seed in range(PIPELINES):
        rng = random.Random(seed)
        pipeline = random_pipeline(rng, rng.randint(1, 5))
        visit(pipeline)
        result = read_all(build(pipeline))
        long += len(result["elements"]) >= 3
        failed += result["error"] is not None
    assert used == {"range", "batch", "shard", "take", "skip", "repeat", "zip", "concatenate"}
    assert long >= 40
    assert failed >= 2
