"""SequenceExamples, ragged, sparse and filled up features, sparse batches and weights of samples, beside TensorFlow 2.15,
on records made at random."""

import random

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json

KINDS = {"int64": tf.int64, "float32": tf.float32, "bytes": tf.string}
PARTITIONS = ["RowSplits", "RowLengths", "RowStarts", "RowLimits", "ValueRowIds"]


def feature(values, dtype):
    message = tf.train.Feature()
    if dtype == "int64":
        message.int64_list.value.extend(values)
    elif dtype == "float32":
        message.float_list.value.extend(values)
    else:
        message.bytes_list.value.extend(values)
    return message


def value(rng, dtype):
    if dtype == "int64":
        return rng.randint(-2**63, 2**63 - 1)
    if dtype == "float32":
        return float(np.float32(rng.uniform(-9, 9)))
    return bytes(rng.randrange(256) for _ in range(rng.randint(0, 5)))


def tensor_json(tensor):
    array = tensor.numpy()
    if tensor.dtype == tf.string:
        return {"dtype": "bytes", "shape": list(tensor.shape), "values": [text.hex() for text in np.ravel(array)]}
    return as_json(array)


def probe_json(parsed):
    """What TensorFlow parsed, as the probe says it; sparse tensors as such."""
    if isinstance(parsed, dict):
        return {key: probe_json(member) for key, member in parsed.items()}
    if isinstance(parsed, (tuple, list)):
        return [probe_json(member) for member in parsed]
    if isinstance(parsed, tf.RaggedTensor):
        return {"ragged": tensor_json(parsed.flat_values),
                "splits": [as_json(splits.numpy().astype("int64")) for splits in parsed.nested_row_splits]}
    if isinstance(parsed, tf.SparseTensor):
        return {"sparse": tensor_json(parsed.values), "indices": as_json(parsed.indices.numpy()),
                "dense_shape": parsed.dense_shape.numpy().tolist()}
    return tensor_json(parsed)


def filled_up(sparse):
    """What a VarLenFeature is here, of TensorFlow's sparse tensor: values and lengths of rows."""
    dense = tf.sparse.to_dense(sparse)
    lengths = np.zeros(dense.shape[:-1], "int64")
    np.add.at(lengths, tuple(sparse.indices.numpy()[:, :-1].T), 1)
    return {"values": tensor_json(dense), "lengths": as_json(lengths)}


def rows_of(rng, count):
    """Lengths of rows that have `count` values together."""
    lengths = []
    while count > 0 or rng.random() < 0.3:
        length = rng.randint(0, count)
        lengths.append(length)
        count -= length
    return lengths


def partition_values(kind, lengths):
    ends = np.cumsum([0] + lengths).tolist()
    return {"RowSplits": ends, "RowLengths": lengths, "RowStarts": ends[:-1], "RowLimits": ends[1:],
            "ValueRowIds": np.repeat(range(len(lengths)), lengths).tolist()}[kind]


def one_partition(kind, key):
    return {"kind": kind, "key": key}, getattr(tf.io.RaggedFeature, kind)(key)


def ragged_case(rng):
    """(features as the probe reads them, as TensorFlow does, records) of a feature with partitions."""
    dtype = rng.choice(list(KINDS))
    kinds = [rng.choice(PARTITIONS) for _ in range(rng.randint(0, 3))]
    uniform = rng.choice([None, None, 1, 2, 3])
    ours, theirs = [], []
    for i, kind in enumerate(kinds):
        our, their = one_partition(kind, f"p{i}")
        ours.append(our)
        theirs.append(their)
    if uniform:
        ours.append({"kind": "UniformRowLength", "length": uniform})
        theirs.append(tf.io.RaggedFeature.UniformRowLength(uniform))
    records = []
    for _ in range(rng.randint(1, 5)):
        features = {}
        count = rng.randint(0, 4) if kinds else rng.randint(0, 6)
        features["v"] = feature([value(rng, dtype) for _ in range(count * (uniform or 1))], dtype)
        for i in reversed(range(len(kinds))):
            lengths = rows_of(rng, count)
            if kinds[i] == "ValueRowIds":  # empty rows at the end leave no trace
                while lengths and lengths[-1] == 0:
                    lengths.pop()
            features[f"p{i}"] = feature(partition_values(kinds[i], lengths), "int64")
            count = len(lengths)
        records.append(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return ({"r": {"kind": "ragged", "dtype": dtype, "value_key": "v", "partitions": ours}},
            {"r": tf.io.RaggedFeature(KINDS[dtype], value_key="v", partitions=theirs, row_splits_dtype=tf.int64,
                                      validate=True)},
            records)


def test_ragged_features(probe):
    rng = random.Random(1)
    for _ in range(60):
        ours, theirs, records = ragged_case(rng)
        answer = probe("parse_records", {"records": [r.hex() for r in records], "features": ours})
        assert answer["error"] is None, answer
        assert answer["parsed"] == probe_json(tf.io.parse_example(records, theirs)), ours
        answer = probe("parse_records", {"records": [records[0].hex()], "features": ours, "single": True})
        assert answer["parsed"] == probe_json(tf.io.parse_single_example(records[0], theirs)), ours


@pytest.mark.parametrize("kind,values", [("RowSplits", [0, 2]), ("RowLengths", [1, 9]), ("RowStarts", [1, 2]),
                                         ("RowLimits", [4]), ("ValueRowIds", [0, 2, 1])])
def test_wrong_partitions(probe, kind, values):
    record = tf.train.Example(features=tf.train.Features(feature={
        "r": feature([1, 2, 3], "int64"), "p": feature(values, "int64")})).SerializeToString()
    our, their = one_partition(kind, "p")
    answer = probe("parse_records", {"records": [record.hex()], "features": {
        "r": {"kind": "ragged", "dtype": "int64", "partitions": [our]}}})
    assert answer["error"] == "INVALID_ARGUMENT"
    with pytest.raises((tf.errors.InvalidArgumentError, ValueError)):
        tf.io.parse_example([record], {"r": tf.io.RaggedFeature(tf.int64, partitions=[their], validate=True)})


def test_sparse_features(probe):
    rng = random.Random(2)
    for dimensions in [1, 2, 3]:
        for dtype in ["int64", "float32"]:
            size = [rng.randint(3, 9) for _ in range(dimensions)]
            keys = [f"i{d}" for d in range(dimensions)]
            records = []
            for _ in range(6):
                places = {tuple(rng.randrange(n) for n in size) for _ in range(rng.randint(0, 5))}
                places = sorted(places, key=lambda _: rng.random())
                features = {key: feature([place[d] for place in places], "int64") for d, key in enumerate(keys)}
                features["v"] = feature([value(rng, dtype) for _ in places], dtype)
                records.append(tf.train.Example(
                    features=tf.train.Features(feature=features)).SerializeToString())
            ours = {"s": {"kind": "sparse", "dtype": dtype, "index_keys": keys, "value_key": "v", "size": size}}
            theirs = {"s": tf.io.SparseFeature(keys, "v", KINDS[dtype], size)}
            answer = probe("parse_records", {"records": [r.hex() for r in records], "features": ours})
            assert answer["parsed"] == probe_json(tf.io.parse_example(records, theirs))
            answer = probe("parse_records", {"records": [records[1].hex()], "features": ours, "single": True})
            assert answer["parsed"] == probe_json(tf.io.parse_single_example(records[1], theirs))


@pytest.mark.parametrize("dtype,shape,default", [("int64", [], -1), ("int64", [2], None), ("float32", [2, 1], 0.5),
                                                 ("bytes", [], None)])
def test_filled_up_features(probe, dtype, shape, default):
    rng = random.Random(3)
    records = []
    for _ in range(8):
        count = rng.randint(0, 4) * int(np.prod(shape, dtype=int))
        records.append(tf.train.Example(features=tf.train.Features(feature={
            "x": feature([value(rng, dtype) for _ in range(count)], dtype)})).SerializeToString())
    ours = {"kind": "sequence", "dtype": dtype, "shape": shape, "allow_missing": True}
    if default is not None:
        ours["default"] = as_json(np.array(default, dtype))
    theirs = {"x": tf.io.FixedLenSequenceFeature(shape, KINDS[dtype], allow_missing=True, default_value=default)}
    answer = probe("parse_records", {"records": [r.hex() for r in records], "features": {"x": ours}})
    assert answer["parsed"] == probe_json(tf.io.parse_example(records, theirs))
    answer = probe("parse_records", {"records": [records[0].hex()], "features": {"x": ours}, "single": True})
    assert answer["parsed"] == probe_json(tf.io.parse_single_example(records[0], theirs))


CONTEXT = {"id": {"kind": "fixed", "dtype": "int64", "shape": []},
           "tags": {"kind": "ragged", "dtype": "bytes"}}
CONTEXT_OF_TF = {"id": tf.io.FixedLenFeature([], tf.int64),
                 "tags": tf.io.RaggedFeature(tf.string, row_splits_dtype=tf.int64)}
SEQUENCES = {"x": {"kind": "sequence", "dtype": "float32", "shape": [2], "allow_missing": True},
             "w": {"kind": "sequence", "dtype": "bytes", "shape": [], "allow_missing": True},
             "n": {"kind": "var_len", "dtype": "int64"},
             "r": {"kind": "ragged", "dtype": "int64", "value_key": "n2"},
             "p": {"kind": "ragged", "dtype": "int64", "value_key": "n2",
                   "partitions": [{"kind": "RowLengths", "key": "rows"}]}}
SEQUENCES_OF_TF = {"x": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True),
                   "w": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
                   "n": tf.io.VarLenFeature(tf.int64),
                   "r": tf.io.RaggedFeature(tf.int64, value_key="n2", row_splits_dtype=tf.int64),
                   "p": tf.io.RaggedFeature(tf.int64, value_key="n2", row_splits_dtype=tf.int64, validate=True,
                                            partitions=[tf.io.RaggedFeature.RowLengths("rows")])}


def sequence_record(rng):
    steps = rng.randint(0, 4)
    lists = {}

    def add(name, make):
        lists[name] = tf.train.FeatureList(feature=[make() for _ in range(steps)])

    add("x", lambda: feature([value(rng, "float32") for _ in range(2)], "float32"))
    add("n", lambda: feature([value(rng, "int64") for _ in range(rng.randint(0, 3))], "int64"))
    counts = [rng.randint(0, 3) for _ in range(steps)]
    lists["n2"] = tf.train.FeatureList(feature=[feature([rng.randint(0, 9) for _ in range(n)], "int64")
                                                for n in counts])
    lists["rows"] = tf.train.FeatureList(feature=[feature(rows_of(rng, n), "int64") for n in counts])
    if rng.random() < 0.7:  # it may be missing
        add("w", lambda: feature([value(rng, "bytes")], "bytes"))
    context = {"id": feature([value(rng, "int64")], "int64"),
               "tags": feature([value(rng, "bytes") for _ in range(rng.randint(0, 2))], "bytes")}
    return tf.train.SequenceExample(context=tf.train.Features(feature=context),
                                    feature_lists=tf.train.FeatureLists(feature_list=lists)).SerializeToString()


def test_sequence_examples(probe):
    rng = random.Random(4)
    for _ in range(20):
        records = [sequence_record(rng) for _ in range(rng.randint(1, 6))]
        request = {"records": [r.hex() for r in records], "context": CONTEXT, "sequences": SEQUENCES}
        answer = probe("parse_records", request)
        assert answer["error"] is None, answer
        context, sequences, lengths = tf.io.parse_sequence_example(records, CONTEXT_OF_TF, SEQUENCES_OF_TF)
        expected = probe_json(sequences)
        expected["n"] = filled_up(sequences["n"])
        assert answer["parsed"][0] == probe_json(context)
        assert answer["parsed"][1] == expected
        assert {name: answer["parsed"][2][name] for name in lengths} == probe_json(lengths)

        answer = probe("parse_records", {**request, "records": [records[0].hex()], "single": True})
        context, sequences = tf.io.parse_single_sequence_example(records[0], CONTEXT_OF_TF, SEQUENCES_OF_TF)
        expected = probe_json(sequences)
        expected["n"] = filled_up(sequences["n"])
        assert answer["parsed"] == [probe_json(context), expected]


def test_sequence_errors(probe):
    record = tf.train.SequenceExample(feature_lists=tf.train.FeatureLists(feature_list={
        "x": tf.train.FeatureList(feature=[feature([1, 2], "int64")])})).SerializeToString()
    for name, ours, theirs in [
            ("y", {"kind": "sequence", "dtype": "int64", "shape": []}, tf.io.FixedLenSequenceFeature([], tf.int64)),
            ("x", {"kind": "sequence", "dtype": "int64", "shape": []}, tf.io.FixedLenSequenceFeature([], tf.int64)),
            ("x", {"kind": "var_len", "dtype": "float32"}, tf.io.VarLenFeature(tf.float32))]:
        answer = probe("parse_records", {"records": [record.hex()], "context": {}, "sequences": {name: ours}})
        assert answer["error"] == "INVALID_ARGUMENT"
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_sequence_example([record], None, {name: theirs})


def test_sequence_builder(probe):
    rng = random.Random(5)
    examples = [{"context": {"a": [rng.randint(-9, 9) for _ in range(rng.randint(0, 3))]},
                 "lists": {name: [[rng.randint(0, 2**62) for _ in range(rng.randint(0, 3))]
                                  for _ in range(rng.randint(0, 3))] for name in "bc"}} for _ in range(30)]
    built = probe("build_sequence_examples", {"examples": examples})["examples"]
    for example, record in zip(examples, built):
        message = tf.train.SequenceExample.FromString(bytes.fromhex(record))
        assert {k: list(v.int64_list.value) for k, v in message.context.feature.items()} == example["context"]
        assert {k: [list(step.int64_list.value) for step in v.feature]
                for k, v in message.feature_lists.feature_list.items()} == example["lists"]


@pytest.mark.parametrize("row_shape", [[7, 3], [None, 4], [None, None]])
def test_sparse_batch(probe, row_shape):
    rng = np.random.default_rng(6)
    rows = [rng.integers(0, 3, (rng.integers(0, 8), rng.integers(1, 4))) for _ in range(9)]
    dataset = tf.data.Dataset.from_generator(
        lambda: rows, output_signature=tf.TensorSpec([None, None], tf.int64)).sparse_batch(4, row_shape)
    answer = probe("batch_sequences", {"rows": [as_json(row) for row in rows], "batch_size": 4,
                                       "row_shape": [-1 if n is None else n for n in row_shape]})
    assert answer["parsed"] == [probe_json(batch) for batch in dataset]


@pytest.mark.parametrize("stop", [True, False])
def test_weights_of_samples(probe, stop):
    """Weights that leave no choice give one order; those of an ended dataset are passed over."""
    choices = [0, 1, 1, 2, 0, 0, 2, 1, 0, 1, 2, 2, 1]
    weights = np.eye(3, dtype="float32")[choices]
    ranges = [[0, 3], [10, 20], [20, 30]]
    expected = tf.data.Dataset.sample_from_datasets(
        [tf.data.Dataset.range(*r) for r in ranges], weights=tf.data.Dataset.from_tensor_slices(weights),
        stop_on_empty_dataset=stop)
    answer = probe("sample_by_weights", {"ranges": ranges, "weights": as_json(weights), "stop": stop})
    assert answer["parsed"] == [x.numpy() for x in expected]


def test_batched_features(probe, tmp_path):
    rng = random.Random(7)
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(7):
            places = sorted(rng.sample(range(9), rng.randint(0, 4)))
            writer.write(tf.train.Example(features=tf.train.Features(feature={
                "ids": feature([rng.randint(0, 99) for _ in range(rng.randint(0, 4))], "int64"),
                "i": feature(places, "int64"),
                "v": feature([value(rng, "float32") for _ in places], "float32")})).SerializeToString())
    dataset = tf.data.experimental.make_batched_features_dataset(
        path, 3, {"ids": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
                  "s": tf.io.SparseFeature("i", "v", tf.float32, 9)}, num_epochs=1, shuffle=False)
    answer = probe("batch_features", {"path": path, "batch_size": 3, "features": {
        "ids": {"kind": "ragged", "dtype": "int64"},
        "s": {"kind": "sparse", "dtype": "float32", "index_keys": ["i"], "value_key": "v", "size": [9]}}})
    assert answer["parsed"] == [probe_json(batch) for batch in dataset]
