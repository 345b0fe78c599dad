"""Datasets of directories and arrays and pad_sequences, beside Keras 2.15: the files, their order and split for a seed,
labels, windows, padding."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf
from keras.src.utils import dataset_utils

from conftest import as_json, from_json

SEEDS = [0, 1, 42, 2**32 - 1]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    rng = random.Random(1)
    root = tmp_path_factory.mktemp("texts")
    for name in ["b", "a", "c-1", "c"]:
        for below in ["", "sub", "sub/deep", "sub-x"]:
            (root / name / below).mkdir(parents=True, exist_ok=True)
            for _ in range(rng.randint(0, 3)):
                file = root / name / below / f"{rng.randint(0, 99)}{rng.choice(['.txt', '.TXT', '.md'])}"
                file.write_text("text of " + str(file.relative_to(root)))
    (root / ".hidden").mkdir()
    (root / ".hidden" / "a.txt").write_text("hidden")
    (root / "top.txt").write_text("top")
    return root


def element_json(element):
    def leaf(tensor):
        if tensor.dtype == tf.string:
            return {"dtype": "string", "shape": tensor.shape.as_list(),
                    "values": [text.decode() for text in np.ravel(tensor.numpy())]}
        return as_json(tensor.numpy())
    return [leaf(member) for member in element] if isinstance(element, tuple) else leaf(element)


@pytest.mark.parametrize("options", [
    {}, {"label_mode": "categorical"}, {"label_mode": None}, {"labels": None}, {"batch_size": None},
    {"class_names": ["c", "b", "c-1", "a"]}, {"max_length": 9, "batch_size": 3}])
def test_text_directory(probe, texts, options):
    request = {"directory": str(texts), "shuffle": False, **options}
    expected = tf.keras.utils.text_dataset_from_directory(str(texts), shuffle=False, **options)
    [ours] = probe("read_text_directory", request)
    assert ours["elements"] == [element_json(element) for element in expected]
    if options.get("labels", "") is None or options.get("label_mode", "") is None:
        assert ours["class_names"] == []
    else:
        assert ours["class_names"] == expected.class_names


def test_given_labels(probe, texts):
    count = len(probe("read_text_directory", {"directory": str(texts), "labels": None})[0]["file_paths"])
    labels = [i % 3 + 5 for i in range(count)]
    for mode in ["int", "categorical"]:
        options = {"labels": labels, "label_mode": mode, "shuffle": False}
        expected = tf.keras.utils.text_dataset_from_directory(str(texts), **options)
        [ours] = probe("read_text_directory", {"directory": str(texts), **options})
        assert ours["elements"] == [element_json(element) for element in expected]
        assert ours["class_names"] == [str(name) for name in expected.class_names]


@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_split(probe, texts, seed):
    """Keras shuffles files before elements: of the former the order is the same, of both the split."""
    paths, _, _ = dataset_utils.index_directory(str(texts), "inferred", (".txt",), shuffle=True, seed=seed)
    [ours] = probe("read_text_directory", {"directory": str(texts), "seed": seed})
    assert ours["file_paths"] == paths
    split = {"seed": seed, "validation_split": 0.3}
    training, validation = probe("read_text_directory", {"directory": str(texts), **split, "subset": "both"})
    assert training["file_paths"] + validation["file_paths"] == paths
    for subset, part in [("training", training), ("validation", validation)]:
        dataset = tf.keras.utils.text_dataset_from_directory(str(texts), subset=subset, **split)
        theirs = sorted((text.decode(), label) for batch, rows in dataset
                        for text, label in zip(batch.numpy(), rows.numpy()))
        ours = sorted((text, label) for batch in part["elements"]
                      for text, label in zip(batch[0]["values"], batch[1]["values"]))
        assert ours == theirs
        [alone] = probe("read_text_directory", {"directory": str(texts), **split, "subset": subset})
        assert alone["file_paths"] == part["file_paths"]


@pytest.mark.parametrize("options", [
    {"label_mode": "binary"}, {"label_mode": "other"}, {"class_names": ["a"]}, {"labels": [1, 2]},
    {"validation_split": 2.0, "subset": "training", "seed": 1}, {"validation_split": 0.5},
    {"validation_split": 0.5, "subset": "none", "seed": 1}, {"validation_split": 0.5, "subset": "training"}])
def test_wrong_options(probe, texts, options):
    with pytest.raises(ValueError):
        tf.keras.utils.text_dataset_from_directory(str(texts), **options)
    answer = probe("read_text_directory", {"directory": str(texts), **options})
    assert answer["error"] == "INVALID_ARGUMENT"


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    rng = np.random.default_rng(2)
    root = tmp_path_factory.mktemp("images")
    for name, count in [("cats", 4), ("dogs", 3)]:
        (root / name).mkdir()
        for i in range(count):
            # Smooth, so that JPEG's rounding stays small.
            small = rng.integers(0, 256, (3, 4, 3)).astype("float32")
            picture = tf.cast(tf.image.resize(small, (20 + 7 * i, 30 - 3 * i)), tf.uint8)
            encoded = tf.io.encode_png(picture) if i % 2 else tf.io.encode_jpeg(picture)
            (root / name / f"{i}.{'png' if i % 2 else 'jpg'}").write_bytes(encoded.numpy())
    return root


@pytest.mark.parametrize("options", [
    {}, {"label_mode": "binary"}, {"label_mode": "categorical"}, {"labels": None}, {"color_mode": "grayscale"},
    {"batch_size": None}, {"batch_size": 3, "interpolation": "bicubic"}, {"interpolation": "nearest"},
    {"interpolation": "area"}, {"crop_to_aspect_ratio": True}, {"crop_to_aspect_ratio": True, "image_size": [9, 31]}])
def test_image_directory(probe, images, options):
    options = {"image_size": [16, 12], "shuffle": False, **options}
    expected = tf.keras.utils.image_dataset_from_directory(str(images), **options)
    [ours] = probe("read_image_directory", {"directory": str(images), **options})
    assert ours["file_paths"] == expected.file_paths
    expected = [element_json(element) for element in expected]
    assert len(ours["elements"]) == len(expected)
    for our, their in zip(ours["elements"], expected):
        if isinstance(their, list):
            assert our[1] == their[1]
            our, their = our[0], their[0]
        assert our["dtype"] == their["dtype"]
        np.testing.assert_allclose(from_json(our), from_json(their), rtol=1e-5, atol=1e-3)


def test_image_split(probe, images):
    split = {"seed": 5, "validation_split": 0.3, "image_size": [4, 4]}
    training, validation = probe("read_image_directory", {"directory": str(images), **split, "subset": "both"})
    theirs = tf.keras.utils.image_dataset_from_directory(str(images), **split, subset="both")
    assert training["file_paths"] == theirs[0].file_paths
    assert validation["file_paths"] == theirs[1].file_paths


SERIES = [
    {"sequence_length": 3}, {"sequence_length": 4, "sequence_stride": 3, "sampling_rate": 2},
    {"sequence_length": 1, "batch_size": None}, {"sequence_length": 5, "start_index": 3, "end_index": 15},
    {"sequence_length": 2, "batch_size": 4, "start_index": 1}, {"sequence_length": 19, "end_index": 19},
    {"sequence_length": 40}]


@pytest.mark.parametrize("options,shape,targets", itertools.product(SERIES, [(20,), (20, 2)], [None, 20, 5]))
def test_timeseries(probe, options, shape, targets):
    data = np.arange(np.prod(shape), dtype="float32").reshape(shape)
    aims = None if targets is None else np.arange(targets, dtype="int64") * 10
    dataset = tf.keras.utils.timeseries_dataset_from_array(data, aims, **options)
    request = {"data": as_json(data), **options}
    if aims is not None:
        request["targets"] = as_json(aims)
    expected = []
    try:
        expected = [element_json(element) for element in dataset]
    except tf.errors.InvalidArgumentError:  # a window without a target
        assert probe("read_timeseries", request)["error"] == "INVALID_ARGUMENT"
        return
    assert probe("read_timeseries", request)["elements"] == expected


@pytest.mark.parametrize("options", [
    {"sequence_stride": 0}, {"sampling_rate": 20}, {"start_index": -1}, {"start_index": 20}, {"end_index": 20},
    {"start_index": 5, "end_index": 4}])
def test_wrong_timeseries(probe, options):
    data = np.arange(20, dtype="float32")
    with pytest.raises(ValueError):
        tf.keras.utils.timeseries_dataset_from_array(data, None, 2, **options)
    answer = probe("read_timeseries", {"data": as_json(data), "sequence_length": 2, **options})
    assert answer["error"] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("padding,truncating,maxlen,dtype", itertools.product(
    ["pre", "post"], ["pre", "post"], [None, 1, 3, 9], ["int32", "float32"]))
def test_pad_sequences(probe, padding, truncating, maxlen, dtype):
    rng = np.random.default_rng(3)
    for below in [(), (2,)]:
        sequences = [rng.normal(0, 9, (n, *below)).astype("float32") for n in [4, 0, 1, 6]]
        options = {"padding": padding, "truncating": truncating, "maxlen": maxlen, "dtype": dtype, "value": 2.5}
        expected = tf.keras.utils.pad_sequences(sequences, **options)
        answer = probe("pad_sequences", {"sequences": [as_json(s) for s in sequences], **options})
        np.testing.assert_array_equal(from_json(answer), expected)
        assert answer["dtype"] == dtype
