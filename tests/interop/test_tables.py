"""make_csv_dataset and make_batched_features_dataset give TensorFlow's batches."""

import gzip
import random

import numpy as np
import pytest
import tensorflow as tf

from test_records import (FEATURES, TENSORFLOW_FEATURES, filled_features, tensorflow_example,
                          values_of)

ONCE = {"num_epochs": 1, "shuffle": False}


def tensorflow_default(column):
    dtype = tf.as_dtype(column["dtype"])
    return tf.constant([column["default"]], dtype) if "default" in column else dtype


def tensorflow_csv(paths, batch_size, **options):
    if "column_defaults" in options:
        options["column_defaults"] = [tensorflow_default(column)
                                      for column in options["column_defaults"]]
    return tf.data.experimental.make_csv_dataset(paths, batch_size, **options)


def finite(values):
    """JSON has no other numbers."""
    if isinstance(values, list):
        return [finite(value) for value in values]
    return values if not isinstance(values, float) or np.isfinite(values) else None


def plain(leaf):
    """A tensor as (type, values)."""
    return ("bytes" if leaf.dtype == tf.string else leaf.dtype.name, finite(leaf.numpy().tolist()))


def ours(leaf):
    return (leaf["dtype"], finite(values_of(leaf)))


def in_plain(element, convert, is_leaf):
    if is_leaf(element):
        return convert(element)
    if isinstance(element, dict):
        return {key: in_plain(member, convert, is_leaf) for key, member in element.items()}
    return [in_plain(member, convert, is_leaf) for member in element]


def ours_in_plain(element):
    return in_plain(element, ours, lambda it: isinstance(it, dict) and "values" in it)


def theirs_in_plain(element):
    return in_plain(element, plain, tf.is_tensor)


def write(tmp_path, contents):
    paths = []
    for i, content in enumerate(contents):
        path = tmp_path / f"{i}.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(str(path))
    return paths


def compare(probe, paths, batch_size, **options):
    """Returns the error of both, or None, and the elements before it."""
    options = {**ONCE, **options}
    expected, failed = [], False
    try:
        for element in tensorflow_csv(paths, batch_size, **options):
            expected.append(theirs_in_plain(element))
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError, ValueError):
        failed = True
    answer = probe("read_records", {"kind": "csv_batches", "paths": paths,
                                    "batch_size": batch_size, **options})
    assert (answer["error"] is not None) == failed, answer
    assert [ours_in_plain(element) for element in answer["elements"]] == expected
    return answer.get("text"), expected


CASES = [
    ("a,b,c\n1,x,0.5\n2,y,1e-3\n3,z,\n", {}),
    ("a,b,c\n1,x,0.5\n2,y,1e-3\n3,z,\n", {"label_name": "b"}),
    ("a,b,c\n1,x,0.5\n2,y,1e-3\n", {"select_columns": ["c", "a"]}),
    ("a,b,c\n1,x,0.5\n2,y,1e-3\n", {"select_columns": [2, 0], "label_name": "a"}),
    ("a,b\n1,2\n", {"select_columns": ["a", "a"]}),
    ("a,b\n1,2\n", {"select_columns": ["c"]}),
    ("a,b\n1,2\n", {"select_columns": [2]}),
    ("a,b\n1,2\n", {"label_name": "c"}),
    ("a,b\n1,2\n3,4\n", {"column_names": ["x", "y"]}),
    ("1,2\n3,4\n", {"column_names": ["x", "y"], "header": False}),
    ("1,2\n3,4\n", {"header": False}),
    ("a,a\n1,2\n", {}),
    ("1,2\n", {"column_names": ["x", "x"], "header": False}),
    ("1,2\n", {"column_names": ["x"], "header": False}),
    ("a,b\n1,\n,x\n", {"column_defaults": [{"dtype": "int64", "default": 7},
                                            {"dtype": "string", "default": "-"}]}),
    ("a,b\n1,\n,x\n", {"column_defaults": [{"dtype": "int64"}, {"dtype": "string", "default": "-"}]}),
    ("a,b\n1,2\n", {"column_defaults": [{"dtype": "int64"}]}),
    ("a,b,c\n1,2,3\n", {"column_defaults": [{"dtype": "float64"}], "select_columns": ["b"]}),
    ("a,b\nNA,x\n1,NA\n", {"na_value": "NA"}),
    ("a,b\nNA,x\n1,NA\n", {}),
    ('a,"b,c"\n1,"x ""y"""\n2,"p\nq"\n', {}),
    ('a,b\n1,x"\n', {"use_quote_delim": False}),
    ("a\tb\n1\tx,y\n", {"field_delim": "\t"}),
    ("a,b\r\n1,x\r\n2,y\r\n", {}),
    ("a,b\n1,x\n2,y", {}),
    ("a,b\n", {}),
    ("", {}),
    ("a,b\n1,x\n2\n", {}),
    ("a,b\n1,x\n2\n3,y\n", {"num_rows_for_inference": 1}),
    ("a,b\n1,x\n4,y\n2\n3,y\n", {"num_rows_for_inference": 1, "ignore_errors": True}),
    ("a,b\n1,x\n4,y\n2,y,z\nu,v\n3,w\n", {"num_rows_for_inference": 1, "ignore_errors": True}),
    ("a\n1\n2\nx\n", {"num_rows_for_inference": 2}),
    ("a\n1\n2.5\n", {"num_rows_for_inference": 1}),
    ("a\n,\n", {}),
    (" a , b \n1,2\n", {}),
    ("\u00e9,\u4e2d\n1,\u00fc\n", {}),
    (",a\n0,x\n1,y\n", {}),
    ("a,b\n" + "".join(f"{i},x{i}\n" for i in range(500)), {"num_rows_for_inference": 3}),
]


@pytest.mark.parametrize("content,options", CASES)
def test_csv(probe, tmp_path, content, options):
    compare(probe, write(tmp_path, [content]), 2, **options)


# Columns of these values, one type each.
TYPES = [
    ["1", "2", "-3"], ["2147483647"], ["2147483648"], ["-2147483649", "1"],
    ["9223372036854775807"], ["9223372036854775808"], ["1.5", "2"], ["1", "1.5"], ["1e3"], ["1e39"],
    ["1e400"], ["-1e400"], ["1e-60"], ["nan"], ["inf"], ["-inf"], ["True"], ["", "", "7"], ["", ""],
    ["", "x"], [" 5", "6 "], ["1.", ".5"], ["0x10"], ["1", "x", "2"], ["3.5", "2147483648"],
    ["2147483648", "3.5"], ["1e39", "1"], ["1e39", "x"], ["007"], ["-0"], ["1e5", "100"], ["--1"],
    ["1-2"], ["2020-01-01"], ["1,5"],
]


@pytest.mark.parametrize("values", TYPES, ids=lambda values: "|".join(values))
def test_types(probe, tmp_path, values):
    content = "a,b\n" + "".join(f'"{value}",1\n' for value in values)
    text, elements = compare(probe, write(tmp_path, [content]), 10)
    assert text is None and len(elements) == 1


@pytest.mark.parametrize("seed", range(10))
def test_several_files(probe, tmp_path, seed):
    """Files of random sizes and values, in turn, in passes, compressed or not."""
    rng = random.Random(seed)

    def field():
        kind = rng.random()
        if kind < 0.15:
            return ""
        if kind < 0.2:
            return '"quoted, and ""marked"""'
        return rng.choice(["x", "yy", "z z"])

    packed = seed % 2 == 1
    contents = []
    for _ in range(rng.randint(1, 5)):
        lines = ["n,x,s,long"]
        for _ in range(rng.choice([0, 1, 7, 40])):
            number = "" if rng.random() < 0.1 else str(rng.randint(-100, 100))
            lines.append(f"{number},{rng.uniform(-9, 9):.6g},{field()},{rng.randint(0, 1 << 40)}")
        content = "\n".join(lines).encode() + b"\n"
        contents.append(gzip.compress(content) if packed else content)
    for reads in (1, rng.randint(2, 4)):
        compare(probe, write(tmp_path, contents), rng.choice([1, 3, 16]), num_parallel_reads=reads,
                num_epochs=rng.randint(1, 3), compression_type="GZIP" if packed else "",
                **({"label_name": "s"} if rng.random() < 0.5 else {}))


def test_files_left_out_of_turns(probe, tmp_path):
    """Records that ignore_errors leaves out take no turn."""
    contents = ["a,b\n" + "".join(f"{10 * i + k},{'x,y' if k in bad else 'z'}\n" for k in range(6))
                for i, bad in enumerate([{1}, {0, 5}, {3, 4}])]
    compare(probe, write(tmp_path, contents), 4, num_parallel_reads=2, ignore_errors=True,
            column_defaults=[{"dtype": "int32"}, {"dtype": "string"}])


def test_headers_that_differ(probe, tmp_path):
    text, _ = compare(probe, write(tmp_path, ["a,b\n1,2\n", "a,c\n1,2\n"]), 2)
    assert "1.csv" in text
    text, _ = compare(probe, write(tmp_path, ["a,b\n1,2\n", ""]), 2)
    assert "1.csv" in text
    text, _ = compare(probe, [str(tmp_path / "*.none")], 2)
    assert "*.none" in text


def test_a_column_that_changes_its_type(probe, tmp_path):
    content = "a,b\n" + "".join(f"{i},1\n" for i in range(150)) + "151,x\n"
    text, elements = compare(probe, write(tmp_path, [content]), 10)
    assert "line 152: field 2 ('b') is no int32: 'x'" in text and len(elements) == 15


def test_shuffled_passes(probe, tmp_path):
    """The order is our own; the batches' sizes and all passes' rows are TensorFlow's."""
    paths = write(tmp_path, ["a\n" + "".join(f"{100 * i + k}\n" for k in range(50)) for i in range(3)])
    for epochs in (1, 2):
        expected = [batch["a"].numpy() for batch in tensorflow_csv(paths, 40, num_epochs=epochs)]
        answer = probe("read_records", {"kind": "csv_batches", "paths": paths, "batch_size": 40,
                                        "num_epochs": epochs})
        found = [values_of(element["a"]) for element in answer["elements"]]
        assert [len(batch) for batch in found] == [len(batch) for batch in expected]
        assert sorted(np.concatenate(found)) == sorted(np.concatenate(expected))
    answer = probe("read_records", {"kind": "csv_batches", "paths": paths, "batch_size": 40, "take": 9})
    assert [len(values_of(element["a"])) for element in answer["elements"]] == [40] * 9


@pytest.mark.parametrize("seed", range(5))
def test_feature_batches(probe, tmp_path, seed):
    rng = random.Random(seed)
    paths = []
    for i in range(rng.randint(1, 3)):
        paths.append(str(tmp_path / f"{i}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for _ in range(rng.randint(0, 20)):
                writer.write(tensorflow_example(filled_features(rng)).SerializeToString())
    options = {"num_epochs": rng.randint(1, 2), "shuffle": False, "label_key": "id",
               "reader_num_threads": rng.randint(1, 2), "drop_final_batch": rng.random() < 0.5}
    expected = list(tf.data.experimental.make_batched_features_dataset(
        paths, 6, TENSORFLOW_FEATURES, **options))
    answer = probe("read_records", {"kind": "feature_batches", "paths": paths, "batch_size": 6,
                                    "features": FEATURES, **options})
    assert answer["error"] is None, answer["text"]
    assert len(answer["elements"]) == len(expected)
    for (found, label), (features, expected_label) in zip(answer["elements"], expected):
        assert ours(label) == plain(expected_label)
        assert set(found) == set(features)
        for name, tensor in features.items():
            if isinstance(tensor, tf.SparseTensor):
                tensor = tf.sparse.to_dense(tensor, b"" if tensor.dtype == tf.string else 0)
                found[name] = found[name]["values"]
            assert ours(found[name]) == plain(tensor), name
