"""Layers over windows and their like follow Keras 2.15: outputs, gradients, configurations both ways, errors.

Keras refuses channels first on a CPU in some layers; those are compared with the layer of channels last."""

import json

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

L = tf.keras.layers
SEQUENCE = (3, 8, 4)
IMAGE = (2, 7, 6, 4)
VOLUME = (2, 5, 6, 4, 2)
CHANNELS_FIRST = {"data_format": "channels_first"}

CASES = [
    ("Conv1D", {"filters": 6, "kernel_size": 3, "groups": 2}, SEQUENCE),
    ("Conv1D", {"filters": 4, "kernel_size": 2, "groups": 4, "padding": "causal"}, SEQUENCE),
    ("Conv2D", {"filters": 6, "kernel_size": 3, "groups": 2, "activation": "relu"}, IMAGE),
    ("Conv2D", {"filters": 4, "kernel_size": [2, 3], "groups": 4, "strides": 2, "padding": "same"}, IMAGE),
    ("Conv2D", {"filters": 4, "kernel_size": 3, "dilation_rate": [1, 2], "kernel_constraint": "max_norm",
                "bias_constraint": {"class_name": "MinMaxNorm", "config": {"rate": 0.5}}}, IMAGE),
    ("Conv3D", {"filters": 3, "kernel_size": 2}, VOLUME),
    ("Conv3D", {"filters": 3, "kernel_size": [1, 3, 2], "strides": [1, 2, 1], "padding": "same",
                "activation": "tanh"}, VOLUME),
    ("Conv3D", {"filters": 2, "kernel_size": 1, "strides": 2, "use_bias": False}, VOLUME),
    ("Conv3D", {"filters": 2, "kernel_size": 2, "dilation_rate": 2}, VOLUME),
    ("Conv1DTranspose", {"filters": 3, "kernel_size": 3}, SEQUENCE),
    ("Conv1DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "padding": "same"}, SEQUENCE),
    ("Conv1DTranspose", {"filters": 3, "kernel_size": 3, "strides": 3, "output_padding": 2}, SEQUENCE),
    ("Conv2DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2, "kernel_constraint": "unit_norm"}, IMAGE),
    ("Conv3DTranspose", {"filters": 3, "kernel_size": 2, "strides": 2}, VOLUME),
    ("Conv3DTranspose", {"filters": 2, "kernel_size": [1, 2, 3], "padding": "same", "activation": "relu"}, VOLUME),
    ("DepthwiseConv1D", {"kernel_size": 3}, SEQUENCE),
    ("DepthwiseConv1D", {"kernel_size": 2, "strides": 2, "padding": "same", "depth_multiplier": 3}, SEQUENCE),
    ("DepthwiseConv2D", {"kernel_size": 3}, IMAGE),
    ("DepthwiseConv2D", {"kernel_size": [2, 3], "strides": 2, "padding": "same", "depth_multiplier": 2,
                         "activation": "relu", "depthwise_regularizer": "l2"}, IMAGE),
    ("DepthwiseConv2D", {"kernel_size": 2, "dilation_rate": 2, "use_bias": False,
                         "depthwise_constraint": "non_neg"}, IMAGE),
    ("SeparableConv1D", {"filters": 5, "kernel_size": 3}, SEQUENCE),
    ("SeparableConv1D", {"filters": 5, "kernel_size": 3, "padding": "causal", "dilation_rate": 2}, SEQUENCE),
    ("SeparableConv2D", {"filters": 5, "kernel_size": 3, "padding": "same", "activation": "elu"}, IMAGE),
    ("SeparableConv2D", {"filters": 5, "kernel_size": [3, 2], "strides": 2, "depth_multiplier": 2,
                         "pointwise_regularizer": "l1", "pointwise_constraint": "max_norm"}, IMAGE),
    ("MaxPooling3D", {}, VOLUME),
    ("MaxPooling3D", {"pool_size": [2, 3, 2], "strides": 1, "padding": "same"}, VOLUME),
    ("AveragePooling3D", {}, VOLUME),
    ("AveragePooling3D", {"pool_size": 2, "strides": [1, 2, 2], "padding": "same"}, VOLUME),
    ("GlobalMaxPooling3D", {}, VOLUME),
    ("GlobalAveragePooling3D", {"keepdims": True}, VOLUME),
    ("ZeroPadding1D", {"padding": [1, 2]}, SEQUENCE),
    ("ZeroPadding2D", {}, IMAGE),
    ("ZeroPadding2D", {"padding": [[0, 1], [2, 3]]}, IMAGE),
    ("ZeroPadding2D", {"padding": [1, 2], **CHANNELS_FIRST}, IMAGE),
    ("ZeroPadding3D", {"padding": [[0, 1], [1, 1], [2, 0]]}, VOLUME),
    ("ZeroPadding3D", {"padding": 1, **CHANNELS_FIRST}, VOLUME),
    ("Cropping1D", {}, SEQUENCE),
    ("Cropping1D", {"cropping": [0, 3]}, SEQUENCE),
    ("Cropping2D", {"cropping": [[1, 0], [2, 1]]}, IMAGE),
    ("Cropping2D", {"cropping": 1, **CHANNELS_FIRST}, IMAGE),
    ("Cropping3D", {}, VOLUME),
    ("Cropping3D", {"cropping": [[1, 0], [0, 0], [0, 1]], **CHANNELS_FIRST}, VOLUME),
    ("UpSampling1D", {"size": 3}, SEQUENCE),
    ("UpSampling2D", {}, IMAGE),
    ("UpSampling2D", {"size": [3, 2], "interpolation": "bilinear"}, IMAGE),
    ("UpSampling2D", {"size": [1, 2], "interpolation": "bilinear", **CHANNELS_FIRST}, IMAGE),
    ("UpSampling2D", {"size": 2, **CHANNELS_FIRST}, IMAGE),
    ("UpSampling3D", {"size": [1, 2, 3]}, VOLUME),
    ("UpSampling3D", {**CHANNELS_FIRST}, VOLUME),
    ("GlobalAveragePooling1D", CHANNELS_FIRST, SEQUENCE),
    ("GlobalMaxPooling1D", {"keepdims": True, **CHANNELS_FIRST}, SEQUENCE),
    ("GlobalAveragePooling2D", CHANNELS_FIRST, IMAGE),
    ("GlobalMaxPooling2D", CHANNELS_FIRST, IMAGE),
    ("GlobalAveragePooling3D", CHANNELS_FIRST, VOLUME),
    ("MaxPooling3D", CHANNELS_FIRST, VOLUME),
    ("GroupNormalization", {"groups": 2}, IMAGE),
    ("GroupNormalization", {"groups": -1, "epsilon": 0.1, "scale": False}, IMAGE),
    ("GroupNormalization", {"groups": 1, "axis": 1, "center": False}, IMAGE),
    ("GroupNormalization", {"groups": 2, "axis": -2, "gamma_constraint": "non_neg"}, IMAGE),
    ("GroupNormalization", {"groups": 2, "beta_regularizer": "l2"}, (5, 4)),
    ("PReLU", {}, IMAGE),
    ("PReLU", {"shared_axes": [1, 2], "alpha_constraint": "non_neg"}, IMAGE),
    ("Permute", {"dims": [2, 1]}, SEQUENCE),
    ("Permute", {"dims": [3, 1, 2]}, IMAGE),
    ("RepeatVector", {"n": 3}, (4, 5)),
    ("Identity", {}, SEQUENCE),
    ("SpatialDropout1D", {"rate": 0.5}, SEQUENCE),
    ("SpatialDropout2D", {"rate": 0.5}, IMAGE),
    ("SpatialDropout3D", {"rate": 0.5}, VOLUME),
    ("GaussianNoise", {"stddev": 0.5}, SEQUENCE),
    ("GaussianDropout", {"rate": 0.5}, SEQUENCE),
    ("AlphaDropout", {"rate": 0.5, "seed": 3}, SEQUENCE),
    ("Dropout", {"rate": 0.5, "noise_shape": [None, 1, 4]}, SEQUENCE),
    ("Dense", {"units": 3, "kernel_constraint": {"class_name": "MaxNorm", "config": {"max_value": 3, "axis": [0, 1]}},
               "bias_constraint": "non_neg"}, (5, 4)),
    ("BatchNormalization", {"beta_constraint": "non_neg", "gamma_constraint": "unit_norm"}, IMAGE),
    ("LayerNormalization", {"beta_constraint": "non_neg", "gamma_constraint": "max_norm"}, SEQUENCE),
]


def plain(config):
    config = json.loads(json.dumps(config))
    if "gamma_initializer" in config and isinstance(config["axis"], list):
        (config["axis"],) = config["axis"]  # which says the same
    return config


def cases_of_keras(name, options, shape):
    rng = np.random.default_rng(list(repr((name, sorted(options), shape)).encode()))
    layer = getattr(L, name)(**options)
    x = tf.constant(rng.normal(size=shape), tf.float32)
    layer(x)
    layer.set_weights([(rng.random(size=w.shape) * 0.6 + 0.2).astype("float32") for w in layer.get_weights()])
    return layer, x


def request_of(layer, x):
    return {"layer": type(layer).__name__, "config": plain(layer.get_config()), "input": as_json(x.numpy()),
            "weights": [as_json(w) for w in layer.get_weights()]}


def results_of_keras(layer, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = layer(x)
        flat = tf.reshape(output, [-1])
        loss = tf.reduce_sum(flat * tf.cos(tf.range(tf.size(flat), dtype=tf.float32)))
    gradients = tape.gradient(loss, [x] + layer.trainable_variables, unconnected_gradients="zero")
    return output.numpy(), [gradient.numpy() for gradient in gradients]


def assert_same(answer, output, gradients, tolerance=2e-5):
    assert "error" not in answer, answer
    np.testing.assert_allclose(from_json(answer["output"]), output, rtol=tolerance, atol=tolerance)
    assert len(answer["gradients"]) == len(gradients)
    for ours, theirs in zip(answer["gradients"], gradients):
        np.testing.assert_allclose(from_json(ours), theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name,options,shape", CASES, ids=str)
def test_layer_of_a_configuration_follows_keras(probe, name, options, shape):
    layer, x = cases_of_keras(name, options, shape)
    answer = probe("keras_layer", request_of(layer, x))
    assert_same(answer, *results_of_keras(layer, x))
    # Ours goes back, and says the same.
    again = getattr(L, name).from_config(answer["config"])
    assert plain(again.get_config()) == plain(layer.get_config())


# Keras's CPU kernels know no channels first here.
@pytest.mark.parametrize("name,options,shape", [
    ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "same", "strides": 2}, SEQUENCE),
    ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "causal"}, SEQUENCE),
    ("Conv2D", {"filters": 3, "kernel_size": [3, 2], "padding": "same"}, IMAGE),
    ("Conv3D", {"filters": 3, "kernel_size": 2}, VOLUME),
    ("Conv1DTranspose", {"filters": 3, "kernel_size": 3, "strides": 2}, SEQUENCE),
    ("Conv2DTranspose", {"filters": 3, "kernel_size": 2, "strides": 2, "padding": "same"}, IMAGE),
    ("Conv3DTranspose", {"filters": 3, "kernel_size": 2, "strides": 2}, VOLUME),
    ("DepthwiseConv1D", {"kernel_size": 3}, SEQUENCE),
    ("DepthwiseConv2D", {"kernel_size": 3, "depth_multiplier": 2}, IMAGE),
    ("SeparableConv1D", {"filters": 3, "kernel_size": 3}, SEQUENCE),
    ("SeparableConv2D", {"filters": 3, "kernel_size": 3, "padding": "same", "strides": 2}, IMAGE),
    ("MaxPooling1D", {"padding": "same", "pool_size": 3}, SEQUENCE),
    ("AveragePooling1D", {}, SEQUENCE),
    ("MaxPooling2D", {}, IMAGE),
    ("AveragePooling2D", {"padding": "same", "strides": 1}, IMAGE),
    ("AveragePooling3D", {"padding": "same"}, VOLUME),
], ids=str)
def test_channels_first_is_channels_last_turned(probe, name, options, shape):
    layer, x = cases_of_keras(name, options, shape)
    request = request_of(layer, x)
    first = np.moveaxis(x.numpy(), -1, 1)
    request["config"]["data_format"] = "channels_first"
    request["input"] = as_json(first)
    y = tf.constant(first)
    with tf.GradientTape() as tape:
        tape.watch(y)
        output = layer(tf.transpose(y, [0, *range(2, y.shape.rank), 1]))
        output = tf.transpose(output, [0, y.shape.rank - 1, *range(1, y.shape.rank - 1)])
        flat = tf.reshape(output, [-1])
        loss = tf.reduce_sum(flat * tf.cos(tf.range(tf.size(flat), dtype=tf.float32)))
    gradients = tape.gradient(loss, [y] + layer.trainable_variables)
    answer = probe("keras_layer", request)
    assert_same(answer, output.numpy(), [gradient.numpy() for gradient in gradients])
    config = {**plain(layer.get_config()), "data_format": "channels_first"}
    assert plain(type(layer).from_config(answer["config"]).get_config()) == config


@pytest.mark.parametrize("name,options", [
    ("Conv2D", {"filters": 4, "kernel_size": 3, "groups": 3}),
    ("Conv2D", {"filters": 4, "kernel_size": 3, "data_format": "channels_middle"}),
    ("Conv3D", {"filters": 4, "kernel_size": 3, "strides": 2, "dilation_rate": 2}),
    ("Conv1DTranspose", {"filters": 4, "kernel_size": 3, "strides": 2, "output_padding": 2}),
    ("DepthwiseConv2D", {"kernel_size": 3, "padding": "causal"}),
    ("SeparableConv2D", {"filters": -1, "kernel_size": 3}),
    ("ZeroPadding2D", {"padding": [1, 2, 3]}),
    ("ZeroPadding3D", {"padding": -1}),
    ("UpSampling2D", {"interpolation": "cubist"}),
    ("Permute", {"dims": [1, 3]}),
    ("GaussianDropout", {"rate": 2}),
    ("Dense", {"units": 2, "kernel_constraint": "max_nrom"}),
    ("Dense", {"units": 2, "kernel_constraint": {"class_name": "MaxNorm", "config": {"axis": [5]}}}),
], ids=str)
def test_what_keras_refuses_is_refused(probe, name, options):
    answer = probe("keras_layer", {"layer": name, "config": options, "weights": [],
                                   "input": as_json(np.zeros((2, 3), "float32"))})
    assert answer["error"] == "INVALID_ARGUMENT" and "rank" not in answer["text"], answer


def of_volumes():
    return [tf.keras.Input((4, 4, 4, 2)), L.ZeroPadding3D(1), L.Conv3D(4, 3, activation="tanh"), L.MaxPooling3D(),
            L.Conv3DTranspose(3, 2, strides=2, padding="same"), L.Cropping3D(1), L.UpSampling3D(2),
            L.GlobalAveragePooling3D(), L.Dense(3)]


def of_sequences():
    return [tf.keras.Input((6, 4)), L.Conv1D(6, 2, groups=2, activation="relu"), L.DepthwiseConv1D(2),
            L.SeparableConv1D(4, 2, padding="causal"), L.Conv1DTranspose(3, 3, strides=2), L.PReLU(), L.Permute((2, 1)),
            L.GroupNormalization(3, axis=-1), L.GaussianNoise(0.0), L.Flatten(), L.RepeatVector(2), L.Identity(),
            L.GlobalAveragePooling1D(), L.Dense(3)]


@pytest.mark.parametrize("make", [of_volumes, of_sequences], ids=lambda make: make.__name__)
def test_models_go_both_ways(probe, tmp_path, make):
    tf.keras.utils.set_random_seed(4)
    rng = np.random.default_rng(6)
    model = tf.keras.Sequential(make())
    model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.5), "mse")
    inputs = rng.normal(size=(6, *model.input_shape[1:])).astype("float32")
    labels = rng.uniform(size=(6, 3)).astype("float32")
    model.train_on_batch(inputs, labels)
    model.save_weights(str(tmp_path / "theirs"))
    answer = probe("weights", {
        "json": model.to_json(), "load": str(tmp_path / "theirs"), "steps": 3, "inputs": as_json(inputs),
        "optimizer": {"class": "SGD", "options": {"learning_rate": 0.1, "momentum": 0.5}},
        "labels": as_json(labels), "save": str(tmp_path / "ours")})
    losses = [model.train_on_batch(inputs, labels) for _ in range(3)]
    np.testing.assert_allclose(answer["losses"], losses, rtol=2e-4)
    assert tf.train.list_variables(str(tmp_path / "ours")) == tf.train.list_variables(str(tmp_path / "theirs"))
    again = tf.keras.Sequential(make())
    again.load_weights(str(tmp_path / "ours")).assert_existing_objects_matched().expect_partial()
    np.testing.assert_allclose(again(inputs), model(inputs), rtol=1e-3, atol=1e-4)
