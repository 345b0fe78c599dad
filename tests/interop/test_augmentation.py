"""Layers on images give Keras 2.15's images, configurations and models. What random layers draw is another number
here: they are compared where their ranges leave one number, or by what any number must give."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json
from test_models import read, write

keras = tf.keras
L = keras.layers
rng = np.random.default_rng(11)


def images(*shape, dtype="float32"):
    return (255 * rng.uniform(size=shape)).astype(dtype)


def layer_of(probe, layer, inputs, **request):
    """What ours gives for the inputs; its configuration is Keras's, which reads it, too."""
    config = {key: value for key, value in layer.get_config().items() if key != "batch_input_shape"}
    ours = probe("preprocess", {"layer": type(layer).__name__, "config": config,
                                "inputs": [as_json(array) for array in inputs], **request})
    assert "error" not in ours, ours
    listed = {key: list(value) if isinstance(value, (list, tuple)) else value for key, value in config.items()}
    assert ours["config"] == listed
    again = type(layer).from_config(ours["config"]).get_config()
    assert {key: list(value) if isinstance(value, (list, tuple)) else value for key, value in again.items()
            if key != "batch_input_shape"} == listed
    return [from_json(output) if "error" not in output else output for output in ours["outputs"]]


def compare(probe, layer, inputs, tolerance=2e-3, **request):
    for found, array in zip(layer_of(probe, layer, inputs, **request), inputs, strict=True):
        expected = layer(array, **request).numpy()
        assert found.dtype == expected.dtype and found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=tolerance)


FORMS = [images(9, 7, 3), images(2, 8, 11, 1), images(2, 6, 6, 3, dtype="uint8")]


@pytest.mark.parametrize("crop", [False, True])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian",
                                    "mitchellcubic", "Bilinear"])
def test_resizing(probe, method, crop):
    for size in [(4, 5), (13, 7), (6, 6)]:
        compare(probe, L.Resizing(*size, interpolation=method, crop_to_aspect_ratio=crop), FORMS)
    compare(probe, L.Resizing(4, 5, interpolation=method, crop_to_aspect_ratio=crop, dtype="float64"), FORMS)


def test_center_crop(probe):
    for size in [(4, 5), (5, 4), (6, 6), (13, 3), (20, 20)]:
        compare(probe, L.CenterCrop(*size), FORMS)


MODES = [("reflect", "bilinear"), ("constant", "bilinear"), ("wrap", "nearest"), ("nearest", "bilinear")]


# Pixels whose place is halfway between two may be taken from either.
@pytest.mark.parametrize("fill,interpolation", MODES)
@pytest.mark.parametrize("factor", [0.0, 0.1, 0.37, -0.8])
def test_rotation(probe, fill, interpolation, factor):
    compare(probe, L.RandomRotation((factor, factor), fill, interpolation, fill_value=7.0), FORMS, tolerance=0.05)


@pytest.mark.parametrize("fill,interpolation", MODES)
@pytest.mark.parametrize("down,right", [(0.11, -0.23), (-0.7, 0.9), (0.0, 0.31)])
def test_translation(probe, fill, interpolation, down, right):
    compare(probe, L.RandomTranslation((down, down), (right, right), fill, interpolation, fill_value=3.0), FORMS,
            tolerance=0.05)


@pytest.mark.parametrize("fill,interpolation", MODES)
@pytest.mark.parametrize("height,width", [(0.23, None), (-0.41, None), (0.52, -0.37), (0.0, 1.3)])
def test_zoom(probe, fill, interpolation, height, width):
    layer = L.RandomZoom((height, height), None if width is None else (width, width), fill, interpolation)
    compare(probe, layer, FORMS, tolerance=0.05)


@pytest.mark.parametrize("value_range", [(0, 255), (-1.0, 300.0), (1.0, 0.0)])
@pytest.mark.parametrize("factor", [0.0, 0.2, -0.9])
def test_brightness(probe, factor, value_range):
    compare(probe, L.RandomBrightness((factor, factor), value_range=value_range), FORMS)


def test_contrast(probe):
    for array, found in zip(FORMS, layer_of(probe, L.RandomContrast(0.5, seed=3), FORMS)):
        array = array.astype("float32")
        mean = array.mean((-3, -2), keepdims=True)
        inside = (found > 0) & (found < 255) & (np.abs(array - mean) > 10)
        factors = ((found - mean) / (array - mean))[inside]
        assert 0.5 <= factors.min() and factors.max() - factors.min() < 1e-3 and factors.max() <= 1.5
        wanted = tf.clip_by_value(tf.image.adjust_contrast(array, np.median(factors)), 0, 255)
        np.testing.assert_allclose(found, wanted, atol=0.05)


@pytest.mark.parametrize("mode", ["horizontal", "vertical", "horizontal_and_vertical"])
def test_flip(probe, mode):
    batch = images(200, 4, 5, 3)
    (found,) = layer_of(probe, L.RandomFlip(mode, seed=2), [batch])
    ways = {"horizontal": [(), (2,)], "vertical": [(), (1,)], "horizontal_and_vertical": [(), (1,), (2,), (1, 2)]}[mode]
    counts = [np.all(found == np.flip(batch, way), axis=(1, 2, 3)) for way in ways]
    assert np.all(np.sum(counts, 0) == 1)
    assert min(np.sum(counts, 1)) > 25  # each way about as often


def test_crop(probe):
    # Where no place is to be chosen, and where the image is too small.
    compare(probe, L.RandomCrop(6, 5), [images(6, 5, 3), images(2, 4, 9, 1), images(3, 3, 1)])
    compare(probe, L.RandomCrop(4, 4), [images(6, 5, 3), images(2, 8, 9, 1)], training=False)
    batch = images(2, 8, 9, 3)
    (found,) = layer_of(probe, L.RandomCrop(5, 4, seed=1), [batch])
    windows = [batch[:, y:y + 5, x:x + 4] for y in range(4) for x in range(6)]
    assert any(np.array_equal(window, found) for window in windows)


RANDOM = [L.RandomFlip(), L.RandomRotation(0.3), L.RandomTranslation(0.2, 0.2), L.RandomZoom(0.4),
          L.RandomContrast(0.4), L.RandomBrightness(0.4)]


@pytest.mark.parametrize("layer", RANDOM, ids=lambda layer: type(layer).__name__)
def test_outside_of_training_nothing_changes(probe, layer):
    compare(probe, layer, FORMS, training=False)
    changed = layer_of(probe, layer, [images(6, 8, 9, 3)], training=True)[0]
    assert changed.shape == (6, 8, 9, 3) and np.all(np.isfinite(changed))


@pytest.mark.parametrize("layer,config", [
    ("RandomRotation", {"factor": [0.2, 0.1]}), ("RandomRotation", {"factor": 0.1, "fill_mode": "mirror"}),
    ("RandomTranslation", {"height_factor": 1.5, "width_factor": 0.1}), ("RandomZoom", {"height_factor": -1.2}),
    ("RandomContrast", {"factor": -0.1}), ("RandomContrast", {"factor": [1.1, 0.1]}),
    ("RandomBrightness", {"factor": 1.1}), ("RandomFlip", {"mode": "diagonal"}),
    ("Resizing", {"height": 3, "width": 4, "interpolation": "cubic"})])
def test_what_keras_refuses(probe, layer, config):
    with pytest.raises((ValueError, NotImplementedError)):
        getattr(L, layer)(**config)
    assert probe("preprocess", {"layer": layer, "config": config, "inputs": []})["error"] == "INVALID_ARGUMENT"


def test_models_both_ways(probe, tmp_path):
    model = keras.Sequential([
        keras.Input((10, 9, 3)), L.RandomFlip("horizontal", seed=1), L.RandomRotation((-0.1, 0.2)), L.RandomZoom(0.1),
        L.RandomTranslation(0.1, (0, 0.1), fill_mode="constant", fill_value=1.0), L.RandomContrast((0.1, 0.2)),
        L.RandomBrightness(0.1, value_range=(0.0, 1.0)), L.RandomCrop(8, 8), L.CenterCrop(6, 7), L.Resizing(4, 4),
        L.Flatten(), L.Dense(2)])
    inputs = rng.uniform(size=(4, 10, 9, 3)).astype("float32")
    expected = model(inputs, training=False)
    write(model, tmp_path / "keras")
    ours = probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(inputs),
                           "save": str(tmp_path / "cohort")})
    np.testing.assert_allclose(from_json(ours["outputs"][0]), expected, rtol=1e-4, atol=1e-4)
    again = read(tmp_path / "cohort")
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]
    np.testing.assert_allclose(again(inputs, training=False), expected, rtol=1e-5, atol=1e-5)
