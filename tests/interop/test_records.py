"""Files of records and tf.Examples go both ways between us and TensorFlow."""

import random

import numpy as np
import pytest
import tensorflow as tf

COMPRESSIONS = ["", "GZIP", "ZLIB"]


def sample_records(seed, count=200):
    rng = random.Random(seed)
    records = [b"", b"\0", bytes(range(256)), rng.randbytes(300_000), b"x" * 1_000_000]
    records += [rng.randbytes(rng.randint(0, 2000)) for _ in range(count)]
    return records + [b"the same again and again " * rng.randint(0, 50) for _ in range(count)]


def values_of(leaf):
    """A leaf of the probe's answer as nested lists."""
    values = leaf["values"]
    if leaf["dtype"] == "bytes":
        values = [bytes.fromhex(value) for value in values]
        return np.array(values, object).reshape(leaf["shape"]).tolist()
    return np.array(values, leaf["dtype"]).reshape(leaf["shape"]).tolist()


def scalars(answer):
    assert answer["error"] is None, answer["text"]
    return [values_of(element) for element in answer["elements"]]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_our_records(probe, tmp_path, compression):
    records = sample_records(1)
    path = str(tmp_path / "a.tfrecord")
    probe("write_records", {"path": path, "records": [record.hex() for record in records],
                            "compression": compression})
    assert list(tf.data.TFRecordDataset(path, compression).as_numpy_iterator()) == records


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_we_read_tensorflows_records(probe, tmp_path, compression):
    records = sample_records(2)
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    answer = probe("read_records", {"kind": "tfrecord", "paths": [path], "compression": compression})
    assert scalars(answer) == records


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_files_without_records(probe, tmp_path, compression):
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path, compression):
        pass
    answer = probe("read_records", {"kind": "tfrecord", "paths": [path], "compression": compression})
    assert scalars(answer) == []
    probe("write_records", {"path": path, "records": [], "compression": compression})
    assert list(tf.data.TFRecordDataset(path, compression)) == []


@pytest.mark.parametrize("seed", range(20))
def test_files_in_turn(probe, tmp_path, seed):
    rng = random.Random(seed)
    paths = []
    for i in range(rng.randint(1, 7)):
        paths.append(str(tmp_path / f"f{i}"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for k in range(rng.randint(0, 4)):
                writer.write(f"{i}.{k}".encode())
    reads = rng.randint(1, 4)
    expected = list(tf.data.TFRecordDataset(paths, num_parallel_reads=reads).as_numpy_iterator())
    answer = probe("read_records", {"kind": "tfrecord", "paths": paths, "num_parallel_reads": reads})
    assert scalars(answer) == expected


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_lines(probe, tmp_path, compression):
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\ntwo \xc3\xa9\n" + b"long" * 100_000 + b"\nlast")
    if compression:
        with tf.io.TFRecordWriter(str(tmp_path / "unused"), compression):
            pass
        import gzip
        import zlib
        pack = gzip.compress if compression == "GZIP" else zlib.compress
        path.write_bytes(pack(path.read_bytes()))
    expected = list(tf.data.TextLineDataset(str(path), compression).as_numpy_iterator())
    answer = probe("read_records",
                   {"kind": "lines", "paths": [str(path)], "compression": compression})
    assert scalars(answer) == expected


def test_list_files(probe, tmp_path):
    for name in ["b.txt", "a.txt", "c.csv"]:
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "d.txt").touch()
    for pattern in ["*.txt", "*/*.txt", "[ab].txt", "?.*", "a.txt"]:
        pattern = str(tmp_path / pattern)
        expected = list(tf.data.Dataset.list_files(pattern, shuffle=False).as_numpy_iterator())
        assert scalars(probe("read_records", {"kind": "list", "paths": [pattern]})) == expected


def random_features(rng):
    features = {}
    for name in rng.sample(["a", "b", "c", "", "\u00e9", "long name" * 20], rng.randint(0, 5)):
        kind = rng.choice(["int64", "float32", "bytes"])
        count = rng.choice([0, 1, 1, 2, 5])
        if kind == "int64":
            values = [rng.choice([0, 1, -1, 127, 300, 2**63 - 1, -(2**63)]) for _ in range(count)]
        elif kind == "float32":
            values = [float(np.float32(rng.uniform(-1e5, 1e5))) for _ in range(count)]
        else:
            values = [rng.randbytes(rng.choice([0, 1, 5, 1000])).hex() for _ in range(count)]
        features[name] = {"dtype": kind, "values": values}
    return features


def tensorflow_example(features):
    example = tf.train.Example()
    example.features.SetInParent()
    for name, feature in features.items():
        message = example.features.feature[name]
        if feature["dtype"] == "int64":
            message.int64_list.value.extend(feature["values"])
            message.int64_list.SetInParent()
        elif feature["dtype"] == "float32":
            message.float_list.value.extend(feature["values"])
            message.float_list.SetInParent()
        else:
            message.bytes_list.value.extend(bytes.fromhex(value) for value in feature["values"])
            message.bytes_list.SetInParent()
    return example


def test_tensorflow_parses_our_examples(probe):
    rng = random.Random(3)
    examples = [random_features(rng) for _ in range(100)]
    answer = probe("build_examples", {"examples": examples})
    for features, built in zip(examples, answer["examples"]):
        assert tf.train.Example.FromString(bytes.fromhex(built)) == tensorflow_example(features)


FEATURES = {
    "id": {"dtype": "int64", "shape": []},
    "box": {"dtype": "float32", "shape": [2, 2]},
    "name": {"dtype": "bytes", "shape": []},
    "weight": {"dtype": "float32", "shape": [],
               "default": {"dtype": "float32", "shape": [], "values": [0.5]}},
    "ids": {"dtype": "int64"},
    "scores": {"dtype": "float32"},
    "tags": {"dtype": "bytes"},
}
TENSORFLOW_FEATURES = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "box": tf.io.FixedLenFeature([2, 2], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "weight": tf.io.FixedLenFeature([], tf.float32, 0.5),
    "ids": tf.io.VarLenFeature(tf.int64),
    "scores": tf.io.VarLenFeature(tf.float32),
    "tags": tf.io.VarLenFeature(tf.string),
}


def filled_features(rng):
    features = {
        "id": {"dtype": "int64", "values": [rng.randint(-2**63, 2**63 - 1)]},
        "box": {"dtype": "float32", "values": [float(np.float32(rng.random())) for _ in range(4)]},
        "name": {"dtype": "bytes", "values": [rng.randbytes(rng.randint(0, 200)).hex()]},
        "not asked for": {"dtype": "int64", "values": [1, 2, 3]},
    }
    if rng.random() < 0.5:
        features["weight"] = {"dtype": "float32", "values": [0.25]}
    for name, kind in [("ids", "int64"), ("scores", "float32"), ("tags", "bytes")]:
        if rng.random() < 0.8:
            count = rng.randint(0, 6)
            values = [rng.randint(0, 99) for _ in range(count)]
            if kind == "bytes":
                values = [rng.randbytes(value).hex() for value in values]
            features[name] = {"dtype": kind, "values": values}
    return features


@pytest.mark.parametrize("seed", range(10))
def test_we_parse_tensorflows_examples(probe, seed):
    rng = random.Random(seed)
    serialized = [tensorflow_example(filled_features(rng)).SerializeToString() for _ in range(20)]
    answer = probe("parse_examples", {"examples": [record.hex() for record in serialized],
                                      "features": FEATURES})
    assert answer["error"] is None, answer["text"]
    expected = tf.io.parse_example(serialized, TENSORFLOW_FEATURES)
    for name, tensor in expected.items():
        parsed = answer["parsed"][name]
        if not isinstance(tensor, tf.SparseTensor):
            assert values_of(parsed) == tensor.numpy().tolist(), name
            continue
        default = b"" if tensor.dtype == tf.string else 0
        assert values_of(parsed["values"]) == tf.sparse.to_dense(tensor, default).numpy().tolist()
        lengths = np.bincount(tensor.indices.numpy()[:, 0], minlength=20).tolist()
        assert values_of(parsed["lengths"]) == lengths


def test_examples_that_do_not_fit(probe):
    example = tensorflow_example({"id": {"dtype": "int64", "values": [1, 2]}}).SerializeToString()
    for features, tensorflow_features in [
            ({"id": {"dtype": "int64", "shape": []}}, tf.io.FixedLenFeature([], tf.int64)),
            ({"id": {"dtype": "float32", "shape": [2]}}, tf.io.FixedLenFeature([2], tf.float32)),
            ({"no": {"dtype": "int64", "shape": []}}, tf.io.FixedLenFeature([], tf.int64))]:
        answer = probe("parse_examples", {"examples": [example.hex()], "features": features})
        assert answer["error"] == "INVALID_ARGUMENT"
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.io.parse_example([example], {list(features)[0]: tensorflow_features})


INT, STRING = {"dtype": "int64"}, {"dtype": "string"}
CSV = [
    ("1,2\n3,4\n", [INT, INT], {}),
    ("1,2\r\n3,4", [INT, INT], {}),
    ("", [INT], {}),
    ("\n\n", [{"dtype": "string", "default": "d"}], {}),
    ('1,"a ""q"" b"\n3,"x\ny"', [INT, STRING], {}),
    ("1,2\r3,4\n", [INT, STRING], {}),
    ("1,2\n3\n5,6\n", [INT, INT], {}),
    ("1,2,3\n4,5\n", [INT, INT], {}),
    ("1,x\n5,6\n", [INT, INT], {}),
    ("1,\n", [INT, INT], {}),
    ("1,\n,6\n", [{"dtype": "int32", "default": 7}, {"dtype": "int32", "default": 8}], {}),
    (" 1, 2 \n", [INT, INT], {}),
    ("1.5\n1e3\n-0\n1e-3\n", [{"dtype": "float32"}], {}),
    ("0.1\n1e300\n", [{"dtype": "float64"}], {}),
    ("99999999999\n", [{"dtype": "int32"}], {}),
    ("a,b,c\n1,2,3\n", [INT, INT], {"header": True, "select_cols": [0, 2]}),
    ("1,2,3\n4,x,6\n", [INT, INT], {"exclude_cols": [1]}),
    ("1,2,3\n4,5\n6,7,8\n", [INT, INT], {"exclude_cols": [0]}),
    ("1,2,3\n4,5,6,7\n", [INT], {"exclude_cols": [0, 2]}),
    ("NA,2\n", [{"dtype": "int64", "default": 5}, INT], {"na_value": "NA"}),
    ('"",""\n', [{"dtype": "int64", "default": 5}, {"dtype": "string", "default": "q"}], {}),
    ('"1","2"\n', [INT, INT], {}),
    ('a "b",c\n', [STRING, STRING], {"use_quote_delim": False}),
    ("x\ty,z\n", [STRING, STRING], {"field_delim": "\t"}),
    ("a,b\n", [STRING, STRING], {"header": True}),
    ('a"b\n', [STRING], {}),
    ('"a', [STRING], {}),
]


@pytest.mark.parametrize("content,columns,options", CSV)
def test_csv(probe, tmp_path, content, columns, options):
    """To the first error, which ends our test as it ends tf.data's file."""
    path = tmp_path / "a.csv"
    path.write_bytes(content.encode())
    defaults = []
    for column in columns:
        dtype = tf.as_dtype(column["dtype"])
        defaults.append(tf.constant([column["default"]], dtype) if "default" in column else dtype)
    expected, failed = [], False
    try:
        for row in tf.data.experimental.CsvDataset(str(path), defaults, **options):
            expected.append([value.numpy().tolist() if value.dtype != tf.string else value.numpy()
                             for value in row])
    except tf.errors.InvalidArgumentError:
        failed = True
    answer = probe("read_records",
                   {"kind": "csv", "paths": [str(path)], "columns": columns, **options})
    assert [[values_of(leaf) for leaf in row] for row in answer["elements"]] == expected
    assert (answer["error"] == "INVALID_ARGUMENT") == failed
