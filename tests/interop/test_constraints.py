"""Constraints follow Keras 2.15: their values, their configurations, and weights that are trained under them."""

import json

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

keras = tf.keras
L = keras.layers
C = keras.constraints


@pytest.mark.parametrize("constraint,shape", [
    (C.MaxNorm(), (4, 3)), (C.MaxNorm(0.5, axis=1), (4, 3)), (C.MaxNorm(1.5, axis=[0, 1, 2]), (3, 3, 2, 4)),
    (C.NonNeg(), (4, 3)), (C.UnitNorm(), (4, 3)), (C.UnitNorm(axis=-1), (4, 3)),
    (C.MinMaxNorm(0.5, 1.0, 0.25), (4, 3)), (C.MinMaxNorm(2.0, 3.0, axis=[0, 1]), (4, 3)),
    (C.RadialConstraint(), (4, 4, 2, 3)), (C.RadialConstraint(), (5, 5, 2, 3)),
], ids=lambda value: type(value).__name__ if isinstance(value, C.Constraint) else str(value))
def test_values_and_configurations(probe, constraint, shape):
    value = np.random.default_rng(len(shape)).normal(size=shape).astype("float32")
    form = json.loads(json.dumps(C.serialize(constraint)))
    answer = probe("constraint", {"constraint": form, "value": as_json(value)})
    np.testing.assert_allclose(from_json(answer["value"]), constraint(tf.constant(value)).numpy(), rtol=1e-5,
                               atol=1e-6)
    assert C.deserialize(answer["config"]).get_config() == constraint.get_config()


MODELS = {
    "dense": lambda: [
        keras.Input((4,)),
        L.Dense(5, activation="tanh", kernel_constraint=C.MaxNorm(0.6), bias_constraint=C.NonNeg()),
        L.Dense(3, kernel_constraint=C.MinMaxNorm(0.2, 0.5, 0.5), use_bias=False)],
    "images": lambda: [
        keras.Input((6, 6, 2)),
        L.Conv2D(4, 3, kernel_constraint=C.UnitNorm(axis=[0, 1, 2])),
        L.DepthwiseConv2D(2, depthwise_constraint=C.NonNeg()),
        L.SeparableConv2D(3, 2, pointwise_constraint=C.MaxNorm(0.3), bias_constraint="non_neg"),
        L.GroupNormalization(1, gamma_constraint=C.MaxNorm(0.9), beta_constraint="non_neg"),
        L.PReLU(shared_axes=[1, 2], alpha_constraint="non_neg"), L.Flatten(), L.Dense(3)],
    "texts": lambda: [
        keras.Input((4,), dtype="int64"),
        L.Embedding(40, 3, embeddings_constraint=C.UnitNorm(axis=1)), L.LayerNormalization(gamma_constraint="non_neg"),
        L.Flatten(), L.Dense(3, bias_constraint=C.MaxNorm(0.01))],
}
OPTIMIZERS = [("SGD", {"learning_rate": 0.2}), ("SGD", {"learning_rate": 0.2, "momentum": 0.5}),
              ("Adam", {"learning_rate": 0.05}), ("RMSprop", {"learning_rate": 0.02, "global_clipnorm": 1.0})]


@pytest.mark.parametrize("optimizer,options", OPTIMIZERS, ids=str)
@pytest.mark.parametrize("kind", MODELS)
def test_trained_weights(probe, tmp_path, kind, optimizer, options):
    tf.keras.utils.set_random_seed(3)
    rng = np.random.default_rng(5)

    # Ids come once: Keras takes the norm of a sparse gradient before it adds up the rows of equal ones.
    def make():
        model = keras.Sequential(MODELS[kind]())
        model.compile(getattr(keras.optimizers, optimizer)(**options), "mse")
        return model

    model = make()
    shape = (8, *model.input_shape[1:])
    inputs = rng.permutation(32).reshape(shape) if kind == "texts" else rng.normal(size=shape).astype("float32")
    labels = rng.uniform(size=(8, 3)).astype("float32")
    losses = [model.train_on_batch(inputs, labels) for _ in range(2)]
    model.save_weights(str(tmp_path / "theirs"))
    answer = probe("weights", {"json": model.to_json(), "load": str(tmp_path / "theirs"),
                               "optimizer": {"class": optimizer, "options": options}, "steps": 4,
                               "inputs": as_json(inputs), "labels": as_json(labels), "save": str(tmp_path / "ours")})
    losses = [model.train_on_batch(inputs, labels) for _ in range(4)]
    np.testing.assert_allclose(answer["losses"], losses, rtol=2e-4)
    again = make()
    status = again.load_weights(str(tmp_path / "ours"))
    status.assert_existing_objects_matched().expect_partial()  # the optimizer has no slots yet
    for ours, theirs in zip(again.get_weights(), model.get_weights()):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)
