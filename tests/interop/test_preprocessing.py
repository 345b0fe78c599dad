"""Hashing, HashedCrossing, Discretization and CategoryEncoding give the outputs, boundaries, configurations and
checkpoints of Keras 2.15, on layers and inputs made at random."""

import random

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json

L = tf.keras.layers
CASES = 80


def word(rng):
    length = rng.choice([0, 1, 1, 2, 3, 5, 8, 9, 17, 40, 65, 150])
    return "".join(rng.choice("abcxyzé \t") for _ in range(length))


def integer(rng):
    return rng.choice([rng.randint(-5, 9), rng.randint(-2**63, 2**63 - 1)])


def shape_of(rng, mode):
    if mode == "one_hot":
        return rng.choice([(), (4,), (3, 1), (2, 2)])  # the last is an error
    if mode == "int":
        return rng.choice([(), (0,), (1,), (5,), (2, 3), (2, 1, 2)])
    return rng.choice([(), (0,), (5,), (2, 3), (0, 3), (2, 0), (1, 4), (2, 1, 2)])


def tensor(values, dtype, shape):
    kind = object if dtype == "string" else np.dtype(dtype)
    return tf.constant(np.array(values, kind).reshape(shape), dtype)


def size_of(shape):
    return int(np.prod(shape, dtype=int))


def ragged(rng, values_of, dtype):
    lengths = [rng.randint(0, 3) for _ in range(4)]
    return tf.RaggedTensor.from_row_lengths(tensor(values_of(sum(lengths)), dtype, (sum(lengths),)), lengths)


def probe_json(value):
    if isinstance(value, (list, tuple)):
        return [probe_json(member) for member in value]
    if isinstance(value, tf.RaggedTensor):
        return {"ragged": probe_json(value.flat_values), "row_splits": value.row_splits.numpy().tolist()}
    if value.dtype == tf.string:
        texts = [text.decode() for text in np.ravel(value.numpy())]
        return {"dtype": "string", "shape": value.shape.as_list(), "values": texts}
    return as_json(value.numpy())


def check(ours, expected):
    if expected is None:
        assert ours["error"] == "INVALID_ARGUMENT", ours
        return
    assert "error" not in ours, ours
    if isinstance(expected, tf.RaggedTensor):
        assert ours["row_splits"] == expected.row_splits.numpy().tolist()
        ours, expected = ours["ragged"], expected.flat_values
    assert ours["dtype"] == expected.dtype.name
    assert ours["shape"] == expected.shape.as_list()
    np.testing.assert_allclose(ours["values"], np.ravel(expected.numpy()), rtol=1e-6)


def compare(probe, layer, inputs, **request):
    def output(given):
        try:
            return layer(given)
        except (ValueError, tf.errors.InvalidArgumentError):
            return None

    expected = [output(given) for given in inputs]
    config = dict(layer.get_config())
    config.pop("batch_input_shape", None)
    ours = probe("preprocess", {"layer": type(layer).__name__, "config": config,
                                "inputs": [probe_json(given) for given in inputs], **request})
    assert "error" not in ours, ours
    for key, value in config.items():
        assert ours["config"][key] == value, key
    assert set(ours["config"]) == set(config)
    for found, wanted in zip(ours["outputs"], expected, strict=True):
        check(found, wanted)
    again = type(layer).from_config(ours["config"]).get_config()
    again.pop("batch_input_shape", None)
    assert dict(again) == config
    return ours


@pytest.mark.parametrize("seed", range(CASES))
def test_hashing(probe, seed):
    rng = random.Random(f"hashing {seed}")
    dtype = rng.choice(["string", "int64", "int32", "uint8"])
    make = {"string": word, "int64": integer, "int32": lambda rng: rng.randint(-9, 2**31 - 1),
            "uint8": lambda rng: rng.randint(0, 255)}[dtype]
    mode = rng.choice(["int", "int", "one_hot", "multi_hot", "count"])
    options = {"num_bins": rng.choice([1, 2, 3, 10, 1000 if mode != "int" else 2**62]), "output_mode": mode}
    if rng.random() < 0.4:
        options["salt"] = rng.choice([rng.randint(0, 9), [integer(rng), integer(rng)]])
    if rng.random() < 0.4:
        options["mask_value"] = "a" if dtype == "string" else 3
    if rng.random() < 0.3:
        options["dtype"] = rng.choice(["int64", "int32"] if mode == "int" else ["float64", "int64", "int32"])

    def values(count):
        return [options.get("mask_value", make(rng)) if rng.random() < 0.3 else make(rng) for _ in range(count)]

    inputs = [tensor(values(size_of(shape)), dtype, shape) for shape in (shape_of(rng, mode) for _ in range(3))]
    compare(probe, L.Hashing(**options), inputs + [ragged(rng, values, dtype)])


@pytest.mark.parametrize("seed", range(CASES))
def test_hashed_crossing(probe, seed):
    rng = random.Random(f"crossing {seed}")
    mode = rng.choice(["int", "int", "one_hot"])
    layer = L.HashedCrossing(rng.choice([1, 5, 1000 if mode == "one_hot" else 2**62]), output_mode=mode)

    def column(shape):
        dtype = rng.choice(["string", "int64", "int32"])
        make = {"string": word, "int64": integer, "int32": lambda rng: rng.randint(-9, 9)}[dtype]
        return tensor([make(rng) for _ in range(size_of(shape))], dtype, shape)

    inputs = []
    for _ in range(3):
        shape = rng.choice([(), (4,), (0,), (3, 1), (2, 2)])  # the last is an error
        inputs.append([column(shape) for _ in range(rng.randint(2, 4))])
    inputs.append([column((3,))])
    inputs.append([column((3,)), column((3, 1))])
    compare(probe, layer, inputs)


@pytest.mark.parametrize("seed", range(CASES))
def test_category_encoding(probe, seed):
    rng = random.Random(f"encoding {seed}")
    mode = rng.choice(["one_hot", "multi_hot", "count", "count"])
    layer = L.CategoryEncoding(5, output_mode=mode, dtype=rng.choice(["float32", "float64"]))
    dtype = rng.choice(["int64", "int32", "float32"])

    def values(count):
        most = rng.choice([4, 4, 4, 6])
        return [rng.randint(0 if most == 4 else -1, most) for _ in range(count)]

    inputs = [tensor(values(size_of(shape)), dtype, shape) for shape in (shape_of(rng, mode) for _ in range(3))]
    if dtype != "float32":
        inputs.append(ragged(rng, values, dtype))
    compare(probe, layer, inputs)


@pytest.mark.parametrize("seed", range(20))
def test_weights_of_counts(probe, seed):
    rng = np.random.default_rng(seed)
    shape = [(5,), (2, 3)][seed % 2]
    layer = L.CategoryEncoding(4, output_mode="count", dtype=["float32", "float64"][seed // 2 % 2])
    ids = tf.constant(rng.integers(0, 4, shape))
    weights = tf.constant(rng.uniform(size=shape))
    ours = probe("preprocess", {"layer": "CategoryEncoding", "config": layer.get_config(),
                                "inputs": [probe_json([ids, weights])]})
    check(ours["outputs"][0], layer(ids, count_weights=weights))


@pytest.mark.parametrize("seed", range(CASES))
def test_discretization_with_boundaries(probe, seed):
    rng = random.Random(f"boundaries {seed}")
    mode = rng.choice(["int", "int", "one_hot", "multi_hot", "count"])
    boundaries = sorted(rng.choice([rng.uniform(-3, 3), float(rng.randint(-3, 3))]) for _ in range(rng.randint(1, 9)))
    dtype = rng.choice(["float32", "float64", "int64", "int32"])

    def values(count):
        chosen = [rng.choice([rng.uniform(-4, 4), rng.choice(boundaries), 1e30, -1e30]) for _ in range(count)]
        return [max(-9, min(9, int(x))) for x in chosen] if "int" in dtype else chosen

    inputs = [tensor(values(size_of(shape)), dtype, shape) for shape in (shape_of(rng, mode) for _ in range(3))]
    layer = L.Discretization(boundaries, output_mode=mode)
    compare(probe, layer, inputs + [ragged(rng, values, dtype)])


def data_of(rng):
    size = rng.choice([1, 2, 5, 31, 33, 100, 257, 2000])
    kind = rng.choice(["normal", "few", "skewed", "steps", "ordered"])
    made = np.random.default_rng(rng.randint(0, 2**31))
    data = {"normal": lambda: made.normal(5, 100, size), "few": lambda: made.integers(0, 4, size) * 1.0,
            "skewed": lambda: np.exp(made.normal(0, 5, size)), "steps": lambda: made.integers(-50, 50, size) / 7,
            "ordered": lambda: np.arange(size) * 0.1}[kind]()
    return data.astype(rng.choice(["float32", "float64"]))


@pytest.mark.parametrize("seed", range(CASES))
def test_discretization_learns_the_same_boundaries(probe, tmp_path, seed):
    rng = random.Random(f"adapt {seed}")
    data = data_of(rng)
    if data.size % 2 == 0 and rng.random() < 0.5:
        data = data.reshape(-1, 2)
    batch = rng.choice([1, 7, 32, 32, 500])
    as_dataset = rng.random() < 0.5
    options = {"num_bins": rng.choice([1, 2, 3, 4, 7, 10, 49, 100]),
               "epsilon": rng.choice([0.01, 0.01, 0.1, 0.3, 0.003, 0.7])}
    layer = L.Discretization(**options)
    layer.adapt(tf.data.Dataset.from_tensor_slices(data).batch(batch) if as_dataset else data,
                **({} if as_dataset else {"batch_size": batch}))
    ours = compare(probe, layer, [tf.constant(data)], save=str(tmp_path / "ours"),
                   adapt={"data": as_json(data), "batch": batch, "as_dataset": as_dataset})
    assert ours["boundaries"] == list(layer.bin_boundaries)
    # Ours in Keras.
    saved = tf.train.load_checkpoint(str(tmp_path / "ours"))
    summary = saved.get_tensor("layer/summary/.ATTRIBUTES/VARIABLE_VALUE")
    np.testing.assert_allclose(summary, layer.summary.numpy(), rtol=0, atol=1e-37)  # but for subnormal numbers
    again = L.Discretization(**options)
    again.build(data.shape)
    tf.train.Checkpoint(layer=again).read(str(tmp_path / "ours")).assert_existing_objects_matched()
    again.finalize_state()
    assert list(again.bin_boundaries) == list(layer.bin_boundaries)
    # Keras's in ours.
    path = tf.train.Checkpoint(layer=layer).write(str(tmp_path / "theirs"))
    loaded = compare(probe, layer, [tf.constant(data)], load=path)
    assert loaded["boundaries"] == list(layer.bin_boundaries)


REFUSED = [
    ("Hashing", {"num_bins": 0}), ("Hashing", {"num_bins": -1}), ("Hashing", {"num_bins": 3, "output_mode": "tf_idf"}),
    ("Hashing", {"num_bins": 3, "salt": [1, 2, 3]}), ("HashedCrossing", {"num_bins": 3, "output_mode": "count"}),
    ("Discretization", {"num_bins": -1}), ("Discretization", {"num_bins": 3, "bin_boundaries": [1.0]}),
    ("Discretization", {"num_bins": 3, "output_mode": "tf_idf"}),
    ("CategoryEncoding", {"num_tokens": 0}), ("CategoryEncoding", {"num_tokens": 3, "output_mode": "int"}),
]


@pytest.mark.parametrize("name,options", REFUSED, ids=str)
def test_refuses_what_keras_refuses(probe, name, options):
    with pytest.raises(ValueError):
        getattr(L, name)(**options)
    ours = probe("preprocess", {"layer": name, "config": {"name": "x", **options}, "inputs": []})
    assert ours["error"] == "INVALID_ARGUMENT" and "'x'" in ours["text"]
