"""Losses, compute_average_loss and metrics give TensorFlow's numbers."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

REDUCTIONS = ["none", "sum", "sum_over_batch_size"]
DTYPES = {"float32": 1e-6, "float64": 1e-12}


def random_for(*case):
    """A generator of its own for each case, the same in each run."""
    return np.random.default_rng(list(repr(case).encode()))


def softmax(scores):
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def check_loss(probe, name, options, labels, predictions, sample_weight=None):
    keras_loss = getattr(tf.keras.losses, name)(**options)
    expected = keras_loss(labels, predictions, sample_weight=sample_weight).numpy()
    ours = from_json(probe("loss", {
        "loss": name, "options": options, "labels": as_json(labels),
        "predictions": as_json(predictions), "sample_weight": as_json(sample_weight)}))
    assert ours.shape == expected.shape
    assert ours.dtype == expected.dtype
    tolerance = DTYPES[str(predictions.dtype)]
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 4, 2), (0,)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_sparse_categorical_crossentropy(probe, reduction, from_logits, dtype, shape, weighted):
    random = random_for(reduction, from_logits, dtype, shape, weighted)
    labels = random.integers(0, 5, shape)
    scores = 10 * random.normal(size=(*shape, 5))
    predictions = (scores if from_logits else softmax(scores)).astype(dtype)
    weight = random.random(shape).astype(dtype) if weighted else None
    check_loss(probe, "SparseCategoricalCrossentropy",
               {"from_logits": from_logits, "reduction": reduction}, labels, predictions, weight)


@pytest.mark.parametrize("labels", [[0.5, 1.5, 2.9], [-0.5, 1.0, 2.0]])
def test_fractions_of_sparse_labels_are_cut_off(probe, labels):
    """Keras says nothing of it; Cohort gives the same numbers, and warns."""
    check_loss(probe, "SparseCategoricalCrossentropy", {"from_logits": True, "reduction": "none"},
               np.array(labels, "float32"), np.tile(np.float32([1, 2, 3]), (3, 1)))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_crossentropy(probe, reduction, from_logits, dtype, smoothing):
    random = random_for(reduction, from_logits, dtype, smoothing)
    labels = random.integers(0, 2, (6, 3)).astype(dtype)
    scores = 4 * random.normal(size=(6, 3))
    predictions = (scores if from_logits else 1 / (1 + np.exp(-scores))).astype(dtype)
    check_loss(probe, "BinaryCrossentropy",
               {"from_logits": from_logits, "label_smoothing": smoothing, "reduction": reduction},
               labels, predictions)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_mean_squared_error(probe, reduction, dtype):
    random = random_for(reduction, dtype)
    labels, predictions = random.normal(size=(2, 5, 3)).astype(dtype)
    check_loss(probe, "MeanSquaredError", {"reduction": reduction}, labels, predictions)


@pytest.mark.parametrize("global_batch", [None, 3, 16])
@pytest.mark.parametrize("weight_shape", [None, (), (6,)])
@pytest.mark.parametrize("shape", [(6,), (6, 2)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compute_average_loss(probe, dtype, shape, weight_shape, global_batch):
    if len(shape) == 2 and weight_shape == (6,):
        weight_shape = (6, 1)
    random = random_for(dtype, shape, weight_shape, global_batch)
    losses = random.normal(size=shape).astype(dtype)
    weight = None if weight_shape is None else np.asarray(random.random(weight_shape), dtype)
    expected = tf.nn.compute_average_loss(
        losses, sample_weight=weight, global_batch_size=global_batch).numpy()
    ours = from_json(probe("average_loss", {
        "per_example_loss": as_json(losses), "sample_weight": as_json(weight),
        "global_batch": global_batch}))
    assert ours.dtype == expected.dtype
    # TensorFlow weighs in float32, whatever the dtype of the losses.
    tolerance = DTYPES[dtype if weight is None else "float32"]
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)


def check_metric(probe, name, updates):
    metric = getattr(tf.keras.metrics, name)()
    for update in updates:
        weight = update["sample_weight"]
        if "values" in update:
            metric.update_state(update["values"], sample_weight=weight)
        else:
            metric.update_state(update["labels"], update["predictions"], sample_weight=weight)
    ours = probe("metric", {"metric": name, "updates": [
        {key: as_json(value) for key, value in update.items()} for update in updates]})
    np.testing.assert_allclose(from_json(ours), metric.result().numpy(), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_mean(probe, weighted):
    random = random_for(weighted)
    check_metric(probe, "Mean", [
        {"values": random.normal(size=size).astype("float32"),
         "sample_weight": random.random(size).astype("float32") if weighted else None}
        for size in (4, 1, 9, 0)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["Accuracy", "SparseCategoricalAccuracy"])
def test_accuracies(probe, name, weighted):
    random = random_for(name, weighted)
    updates = []
    for size in (8, 3, 0, 20):
        labels = random.integers(0, 4, size)
        predictions = (random.integers(0, 4, size) if name == "Accuracy"
                       else random.normal(size=(size, 4)).astype("float32"))
        updates.append({"labels": labels, "predictions": predictions, "sample_weight":
                        random.random(size).astype("float32") if weighted else None})
    check_metric(probe, name, updates)


@pytest.mark.parametrize("labels", [[0.5, 1.5, 2.0], [0.5, 1.5, 2.9]])
def test_a_fraction_of_a_sparse_label_is_no_class(probe, labels):
    predictions = np.tile(np.float32([1, 2, 3]), (3, 1))
    check_metric(probe, "SparseCategoricalAccuracy",
                 [{"labels": np.array(labels, "float32"), "predictions": predictions,
                   "sample_weight": None}])
