"""Our input pipelines give tf.data's elements, one by one, on pipelines made at random."""

import copy
import random

import pytest
import tensorflow as tf

PIPELINES = 100
SCALAR_PIPELINES = 200


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


def random_scalar_pipeline(rng, depth):
    """A pipeline of int64 scalars, over which functions run."""
    if depth == 0:
        start = rng.randint(0, 5)
        return {"op": "range", "start": start, "stop": start + rng.choice([0, 3, 8, 14, 30]),
                "step": rng.choice([1, 1, 2])}
    source = random_scalar_pipeline(rng, depth - 1)
    op = rng.choice(["map", "map", "filter", "flat_map", "interleave", "interleave", "scan", "rebatch",
                     "cache", "take_while", "enumerate", "prefetch", "repeat", "skip", "concatenate"])
    calls = rng.choice([None, None, 2, 4, -1])
    if op == "map":
        return {"op": op, "calls": calls, "scalars": rng.random() < 0.5, "source": source}
    if op == "interleave":
        cycle = rng.randint(1, 5)  # tf.data refuses more calls than that
        return {"op": op, "cycle": cycle, "block": rng.randint(1, 3),
                "calls": min(calls, cycle) if calls else None, "source": source}
    if op == "rebatch":
        return {"op": "unbatch", "source": random_rebatch(rng, source)}
    if op == "enumerate":
        return {"op": op, "start": rng.randint(0, 3), "source": source}
    if op == "prefetch":
        return {"op": op, "n": rng.choice([1, 3, -1]), "source": source}
    if op == "repeat":
        return {"op": op, "n": rng.randint(1, 3), "source": source}
    if op == "skip":
        return {"op": op, "n": rng.randint(0, 3), "source": source}
    if op == "concatenate":
        return {"op": op, "sources": [source, random_scalar_pipeline(rng, rng.randrange(depth))]}
    return {"op": op, "source": source}


def random_rebatch(rng, source):
    sizes = [rng.randint(0, 4) for _ in range(rng.randint(1, 3))]
    if not any(sizes):
        sizes.append(2)
    batches = {"op": "batch", "n": rng.randint(1, 5), "drop_remainder": False, "source": source}
    return {"op": "rebatch", "sizes": sizes, "drop_remainder": rng.random() < 0.3, "source": batches}


def random_end(rng, source):
    """What makes something else of scalars, or the scalars themselves."""
    source = {"op": "take", "n": 100, "source": source}
    op = rng.choice(["scalars", "rebatch", "padded_batch", "reduce"])
    if op == "rebatch":
        return random_rebatch(rng, source)
    if op == "padded_batch":
        return {"op": op, "n": rng.randint(1, 4), "size": rng.choice([None, None, 3, 5]),
                "drop_remainder": rng.random() < 0.3, "source": source}
    return {"op": op, "source": source} if op == "reduce" else source


def transform(source, node):
    """As the probe's function of that name."""
    op = node["op"]
    if op == "map":
        return source.map(lambda x: 3 * x + 1, num_parallel_calls=node["calls"])
    if op == "filter":
        return source.filter(lambda x: x % 3 != 0)
    if op == "take_while":
        return source.take_while(lambda x: x % 17 != 16)
    if op == "flat_map":
        return source.flat_map(lambda x: tf.data.Dataset.range(x, x + x % 4))
    if op == "interleave":
        return source.interleave(lambda x: tf.data.Dataset.range(10 * x, 10 * x + x % 5),
                                 cycle_length=node["cycle"], block_length=node["block"],
                                 num_parallel_calls=node["calls"])
    if op == "scan":
        return source.scan(tf.constant(0, tf.int64), lambda total, x: ((total + x) % 1000, total))
    if op == "reduce":
        return tf.data.Dataset.from_tensors(
            source.reduce(tf.constant(7, tf.int64), lambda total, x: (3 * total + x) % 1000))
    if op == "rebatch":
        return source.rebatch(node["sizes"], drop_remainder=node["drop_remainder"])
    if op == "padded_batch":
        return source.map(lambda x: tf.fill([x % 4], x)).padded_batch(
            node["n"], padded_shapes=[node["size"]], padding_values=tf.constant(-1, tf.int64),
            drop_remainder=node["drop_remainder"])
    if op == "enumerate":
        return source.enumerate(node["start"]).map(lambda i, x: 100 * i + x)
    if op == "unbatch":
        return source.unbatch()
    if op == "window":
        return source.window(node["n"], node["shift"], node["stride"],
                             node["drop_remainder"]).flat_map(lambda window: window.batch(node["n"]))
    if op == "cache":
        return source.cache()
    if op == "prefetch":
        return source.prefetch(node["n"])
    return None


def group(source, node):
    """As the probe's function of that name."""
    op, keys = node["op"], node.get("keys", 1)
    if op == "group_by_window":
        size = {"window_size_func": lambda k: k + 1} if node["each"] else {"window_size": node["n"]}
        return source.group_by_window(
            lambda x: x % keys,
            lambda k, window: window.map(lambda x: 100 * k + x).batch(node["n"]), **size)
    if op == "bucket":
        return source.map(lambda x: tf.fill([x % 9], x)).bucket_by_sequence_length(
            lambda x: tf.size(x), node["boundaries"], node["sizes"],
            padding_values=tf.constant(-1, tf.int64), pad_to_bucket_boundary=node["to_boundary"],
            drop_remainder=node["drop_remainder"])
    if op == "group_by_reducer":
        reducer = tf.data.experimental.Reducer(
            lambda k: 7 * k, lambda total, x: (3 * total + x) % 1000, lambda total: total + 1)
        return source.apply(tf.data.experimental.group_by_reducer(lambda x: x % keys, reducer))
    if op == "unique":
        return source.map(lambda x: x % (5 * keys)).unique()
    return None


def build(node):
    op = node["op"]
    if op == "choose":
        choices = tf.data.Dataset.from_tensor_slices(tf.constant(node["choices"], tf.int64))
        return tf.data.Dataset.choose_from_datasets(
            [build(source) for source in node["sources"]], choices, node["stop"])
    if op == "counter":
        return tf.data.Dataset.counter(node["start"], node["step"])
    if op == "range":
        return tf.data.Dataset.range(node["start"], node["stop"], node["step"])
    if op == "zip":
        return tf.data.Dataset.zip(tuple(build(source) for source in node["sources"]))
    if op == "concatenate":
        first, second = node["sources"]
        return build(first).concatenate(build(second))
    source = build(node["source"])
    if op == "single":
        return tf.data.Dataset.from_tensors(source.get_single_element())
    grouped = group(source, node)
    if grouped is not None:
        return grouped
    if op == "batch":
        return source.batch(node["n"], drop_remainder=node["drop_remainder"])
    if op == "shard":
        return source.shard(node["n"], node["i"])
    transformed = transform(source, node)
    if transformed is not None:
        return transformed
    return getattr(source, op)(node["n"])


def to_json(element):
    if isinstance(element, tuple):
        return [to_json(member) for member in element]
    values = element.numpy()
    return {"shape": list(values.shape), "values": values.reshape(-1).tolist()}


def describe(dataset):
    leaves = tf.nest.flatten(dataset.element_spec)
    return {"cardinality": int(dataset.cardinality()),
            "shapes": [leaf.shape.as_list() for leaf in leaves]}


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
    dataset = build(pipeline)
    found = probe("pipeline", {"pipeline": pipeline, "describe": True})
    assert found == {**read_all(dataset), **describe(dataset)}


def scalar_pipeline(seed):
    rng = random.Random(seed)
    return random_end(rng, random_scalar_pipeline(rng, rng.randint(1, 4)))


@pytest.mark.parametrize("seed", range(SCALAR_PIPELINES))
def test_functions_follow_tf_data(probe, seed):
    pipeline = scalar_pipeline(seed)
    found, expected = probe("pipeline", {"pipeline": pipeline}), read_all(build(pipeline))
    if found["error"] == "FAILED_PRECONDITION":
        # tf.data knows from traced functions what elements look like that there are none of. Here
        # that is an error where it is needed: for batches of no rows.
        assert "rebatch" in operations(pipeline)
        assert found["elements"] == expected["elements"][:len(found["elements"])]
    else:
        assert found == expected


@pytest.mark.parametrize("seed", range(60))
def test_windows_follow_tf_data(probe, seed):
    rng = random.Random(seed)
    source = random_range(rng) if rng.random() < 0.5 else random_scalar_pipeline(rng, 1)
    pipeline = {"op": "window", "n": rng.randint(1, 5), "shift": rng.randint(1, 6),
                "stride": rng.randint(1, 3), "drop_remainder": rng.random() < 0.5,
                "source": {"op": "take", "n": 40, "source": source}}
    assert probe("pipeline", {"pipeline": pipeline}) == read_all(build(pipeline))


def random_group(rng, source):
    op = rng.choice(["group_by_window", "group_by_window", "bucket", "bucket", "group_by_reducer",
                     "unique"])
    if op == "bucket":
        to_boundary = rng.random() < 0.5
        boundaries = sorted(rng.sample(range(1, 9), rng.randint(1, 3)))
        if to_boundary:
            boundaries[-1] = 9  # longer ones are errors, which come earlier here
        return {"op": op, "boundaries": boundaries,
                "sizes": [rng.randint(1, 4) for _ in range(len(boundaries) + 1)],
                "to_boundary": to_boundary, "drop_remainder": rng.random() < 0.3, "source": source}
    return {"op": op, "keys": rng.randint(1, 5), "n": rng.randint(1, 5),
            "each": rng.random() < 0.4, "source": source}


@pytest.mark.parametrize("seed", range(100))
def test_groups_follow_tf_data(probe, seed):
    rng = random.Random(seed)
    source = {"op": "take", "n": 60, "source": random_scalar_pipeline(rng, rng.randint(0, 2))}
    pipeline = random_group(rng, source)
    assert probe("pipeline", {"pipeline": pipeline}) == read_all(build(pipeline))


@pytest.mark.parametrize("seed", range(60))
def test_choices_follow_tf_data(probe, seed):
    rng = random.Random(seed)
    sources = [random_scalar_pipeline(rng, rng.randint(0, 2)) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.3:
        sources[0] = {"op": "counter", "start": rng.randint(-5, 5), "step": rng.randint(-2, 3)}
    pipeline = {"op": "choose", "sources": sources, "stop": rng.random() < 0.5,
                "choices": [rng.randrange(len(sources)) for _ in range(rng.randint(0, 40))]}
    assert probe("pipeline", {"pipeline": pipeline}) == read_all(build(pipeline))


@pytest.mark.parametrize("size", range(3))
def test_a_single_element_is_tf_datas(probe, size):
    pipeline = {"op": "single", "source": {"op": "range", "start": 4, "stop": 4 + size, "step": 1}}
    found = probe("pipeline", {"pipeline": pipeline})
    try:
        assert found == read_all(build(pipeline))
    except tf.errors.InvalidArgumentError:
        assert found == {"elements": [], "error": "INVALID_ARGUMENT"}


def operations(node):
    found = {node["op"]}
    for source in node.get("sources", [node["source"]] if "source" in node else []):
        found |= operations(source)
    return found


def test_the_functions_cover_their_operations():
    pipelines = [scalar_pipeline(seed) for seed in range(SCALAR_PIPELINES)]
    assert set.union(*map(operations, pipelines)) == {
        "range", "map", "filter", "flat_map", "interleave", "scan", "batch", "rebatch", "unbatch",
        "cache", "take_while", "enumerate", "prefetch", "repeat", "skip", "concatenate", "take",
        "padded_batch", "reduce"}


def test_the_pipelines_cover_their_operations():
    """A generator that only made empty pipelines would prove little."""
    used = set()
    long = failed = 0
    for seed in range(PIPELINES):
        rng = random.Random(seed)
        pipeline = random_pipeline(rng, rng.randint(1, 5))
        used |= operations(pipeline)
        result = read_all(build(pipeline))
        long += len(result["elements"]) >= 3
        failed += result["error"] is not None
    assert used == {"range", "batch", "shard", "take", "skip", "repeat", "zip", "concatenate"}
    assert long >= 40
    assert failed >= 2
