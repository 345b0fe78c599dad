"""Mixed precision is Keras's: policies in files, training curves, and the loss scale step by step."""

import json

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json
from test_models import probe_json, read, write

keras = tf.keras
L = keras.layers
mixed_precision = keras.mixed_precision


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture(autouse=True)
def float32_again():
    yield
    mixed_precision.set_global_policy("float32")


def images():
    return keras.Sequential([
        keras.Input((8, 8, 3)), L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(momentum=0.5),
        L.MaxPooling2D(), L.Flatten(), L.Dense(8, activation="relu"), L.Dense(3, dtype="float32")])


def dense():
    return keras.Sequential([keras.Input((6,)), L.Dense(16, activation="tanh"), L.LayerNormalization(),
                             L.Dropout(0.0), L.Dense(8, activation="relu"), L.Dense(3, dtype="float32")])


def attention():
    x = keras.Input((5, 4))
    y = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x)]))
    return keras.Model(x, L.Dense(3, dtype="float32")(L.Flatten()(y)))


def recurrent():
    return keras.Sequential([keras.Input((5, 4)), L.LSTM(4, return_sequences=True), L.GRU(3),
                             L.Dense(3, dtype="float32")])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("make", [images, dense, attention, recurrent], ids=lambda make: make.__name__)
def test_models_train_as_in_keras_and_go_back(probe, tmp_path, rng, make, policy):
    mixed_precision.set_global_policy(policy)
    model = make()
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.3, size=variable.shape).astype(np.float32))
    model.compile("sgd", "mse")
    is_scaled = policy == "mixed_float16"
    assert isinstance(model.optimizer, mixed_precision.LossScaleOptimizer) == is_scaled
    # What Keras has wrapped by itself it writes without the scale.
    optimizer = keras.optimizers.SGD(0.05)
    model.compile(mixed_precision.LossScaleOptimizer(optimizer) if is_scaled else optimizer, "mse")
    mixed_precision.set_global_policy("float32")
    inputs = rng.normal(size=(16, *model.input.shape[1:])).astype(np.float32)
    labels = rng.normal(size=(16, 3)).astype(np.float32)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs),
                             "labels": as_json(labels), "steps": 8, "save": str(tmp_path / "cohort")})
    expected = [model.train_on_batch(inputs, labels) for _ in range(8)]
    # Both round to 16 bits, after additions in another order.
    np.testing.assert_allclose(answer["losses"], expected, rtol=0.03)
    assert answer["losses"][-1] < 0.97 * answer["losses"][0]

    again = read(tmp_path / "cohort")
    assert ([layer.dtype_policy.name for layer in again.layers]
            == [layer.dtype_policy.name for layer in model.layers])
    assert type(again.optimizer) is type(model.optimizer)
    assert all(variable.dtype == "float32" for variable in again.weights)
    for ours, theirs in zip(again.weights, model.weights):
        np.testing.assert_allclose(ours, theirs, rtol=0.1, atol=0.03)
    if is_scaled:
        assert again.optimizer.loss_scale == model.optimizer.loss_scale
        assert again.optimizer.dynamic_counter == model.optimizer.dynamic_counter == 8


def test_configurations_are_keras_own(probe, tmp_path):
    mixed_precision.set_global_policy("mixed_bfloat16")
    model = keras.Sequential([keras.Input((4,)), L.Dense(3), L.Dense(2, dtype="float16"),
                              L.Activation("softmax", dtype="float32")])
    model.compile(mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(0.5), initial_scale=8,
                                                     dynamic_growth_steps=3), "mse")
    mixed_precision.set_global_policy("float32")
    write(model, tmp_path / "keras")
    probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(np.zeros((1, 4), np.float32)),
                    "save": str(tmp_path / "cohort")})
    ours = json.loads((tmp_path / "cohort" / "model.json").read_text())
    theirs = json.loads((tmp_path / "keras" / "model.json").read_text())
    for one, other in zip(ours["config"]["layers"], theirs["config"]["layers"]):
        assert one["config"]["dtype"] == other["config"]["dtype"], one["config"]["name"]
    one, other = ours["compile_config"]["optimizer"], theirs["compile_config"]["optimizer"]
    for key in ("module", "class_name", "registered_name"):
        assert one[key] == other[key]
    assert one["config"].keys() == other["config"].keys()
    for key in ("dynamic", "initial_scale", "dynamic_growth_steps"):
        assert one["config"][key] == other["config"][key]
    assert one["config"]["inner_optimizer"]["class_name"] == "Adam"


def keras_steps(optimizer, w, slopes):
    steps = []
    for slope in slopes:
        with tf.GradientTape() as tape:
            loss = optimizer.get_scaled_loss(tf.reduce_sum(w * slope))
        gradients = optimizer.get_unscaled_gradients(tape.gradient(loss, [w]))
        optimizer.apply_gradients(zip(gradients, [w]))
        steps.append({"value": w.numpy().copy(), "scale": float(optimizer.loss_scale),
                      "counter": int(optimizer.dynamic_counter),
                      "iterations": int(optimizer.iterations)})
    return steps


def compare(ours, theirs):
    assert len(ours) == len(theirs)
    for step, (one, other) in enumerate(zip(ours, theirs)):
        for key in ("scale", "counter", "iterations"):
            assert one[key] == other[key], (step, key)
        np.testing.assert_allclose(from_json(one["value"]), other["value"], rtol=1e-6, err_msg=str(step))


@pytest.mark.parametrize("name,options", [("SGD", {"learning_rate": 0.1, "momentum": 0.5}),
                                          ("Adam", {"learning_rate": 0.1}),
                                          ("SGD", {"learning_rate": 0.1, "global_clipnorm": 0.5})])
def test_the_loss_scale_step_by_step(probe, tmp_path, rng, name, options):
    def make():
        return mixed_precision.LossScaleOptimizer(getattr(keras.optimizers, name)(**options),
                                                  initial_scale=1024, dynamic_growth_steps=3)

    slopes = [rng.normal(size=5).astype(np.float32) for _ in range(24)]
    broken = [2, 3, 9, 15, 16, 17]
    for step in broken:
        slopes[step][1] = 1e38  # infinite once it is scaled
    initial = rng.normal(size=5).astype(np.float32)
    w = tf.Variable(initial)
    optimizer = make()
    theirs = keras_steps(optimizer, w, slopes[:12])
    tf.train.Checkpoint(optimizer=optimizer, w=w).write(str(tmp_path / "theirs"))

    request = {"optimizer": name, "options": options, "initial_scale": 1024, "growth_steps": 3,
               "initial": as_json(initial)}
    first = probe("scale_losses", {**request, "slopes": [as_json(slope) for slope in slopes[:12]],
                                   "save": str(tmp_path / "ours")})
    compare(first["steps"], theirs)
    assert first["steps"][-1]["skipped"] == 3
    names = [name for name, _ in tf.train.list_variables(str(tmp_path / "theirs"))]
    assert [name for name, _ in tf.train.list_variables(str(tmp_path / "ours"))] == names

    rest = [as_json(slope) for slope in slopes[12:]]
    second = probe("scale_losses", {**request, "initial": as_json(np.zeros(5, np.float32)), "slopes": rest,
                                    "load": str(tmp_path / "theirs")})
    again, v = make(), tf.Variable(tf.zeros(5))
    tf.train.Checkpoint(optimizer=again, w=v).read(str(tmp_path / "ours"))
    again.build([v])
    expected = keras_steps(optimizer, w, slopes[12:])
    compare(second["steps"], expected)
    for one, other in zip(keras_steps(again, v, slopes[12:]), expected):
        assert one["scale"] == other["scale"] and one["counter"] == other["counter"]
        np.testing.assert_allclose(one["value"], other["value"], rtol=1e-6)
