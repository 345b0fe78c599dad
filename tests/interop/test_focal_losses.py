"""Focal losses and ignored classes give Keras's losses and gradients, and are saved as Keras's."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json
from test_losses import DTYPES, REDUCTIONS, check_loss, random_for, softmax
from test_models import read, write


@pytest.mark.parametrize("options", [
    {}, {"gamma": 0.5, "alpha": 0.75}, {"apply_class_balancing": True, "label_smoothing": 0.2},
    {"apply_class_balancing": True, "alpha": 0.1, "gamma": 3.0, "axis": 0}],
    ids=lambda value: str(value))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_focal_crossentropy(probe, reduction, from_logits, dtype, options):
    random = random_for(reduction, from_logits, dtype, options)
    labels = random.integers(0, 2, (6, 3)).astype(dtype)
    scores = 4 * random.normal(size=(6, 3))
    predictions = (scores if from_logits else 1 / (1 + np.exp(-scores))).astype(dtype)
    check_loss(probe, "BinaryFocalCrossentropy",
               {"from_logits": from_logits, "reduction": reduction, **options}, labels, predictions)


@pytest.mark.parametrize("options", [
    {}, {"gamma": 0.5, "alpha": 0.75}, {"alpha": [0.1, 0.2, 0.3, 0.4], "label_smoothing": 0.2},
    {"gamma": 3.0, "axis": 1}], ids=lambda value: str(value))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_categorical_focal_crossentropy(probe, reduction, from_logits, dtype, options):
    random = random_for(reduction, from_logits, dtype, options)
    axis = options.get("axis", -1)
    labels = np.eye(4, dtype=dtype)[random.integers(0, 4, (5, 4))]
    scores = 3 * random.normal(size=(5, 4, 4))
    # Of probabilities that do not sum to 1, too.
    predictions = (scores if from_logits else 0.8 * softmax(scores, axis)).astype(dtype)
    check_loss(probe, "CategoricalFocalCrossentropy",
               {"from_logits": from_logits, "reduction": reduction, **options}, labels, predictions)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(7,), (3, 4, 2)])
@pytest.mark.parametrize("ignored", [-1, 2, 255])
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_an_ignored_class(probe, reduction, from_logits, ignored, shape, weighted):
    random = random_for(reduction, from_logits, ignored, shape, weighted)
    labels = random.integers(0, 5, shape)
    labels[random.random(shape) < 0.4] = ignored
    scores = 3 * random.normal(size=(*shape, 5))
    predictions = (scores if from_logits else softmax(scores)).astype("float32")
    weight = random.random(shape).astype("float32") if weighted else None
    check_loss(probe, "SparseCategoricalCrossentropy",
               {"from_logits": from_logits, "ignore_class": ignored, "reduction": reduction},
               labels, predictions, weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_ignored_class_of_a_metric(probe, weighted):
    random = random_for("metric", weighted)
    metric = tf.keras.metrics.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    updates = []
    for _ in range(3):
        labels, scores = random.integers(0, 4, 9), random.normal(size=(9, 4)).astype("float32")
        weight = random.random(9).astype("float32") if weighted else None
        metric.update_state(labels, scores, sample_weight=weight)
        updates.append({"labels": as_json(labels), "predictions": as_json(scores),
                        "sample_weight": as_json(weight)})
    ours = from_json(probe("metric", {"metric": "SparseCategoricalCrossentropy",
                                      "options": {"from_logits": True, "ignore_class": 0},
                                      "updates": updates}))
    np.testing.assert_allclose(ours, metric.result().numpy(), rtol=1e-6)


@pytest.mark.parametrize("loss", [
    tf.keras.losses.BinaryFocalCrossentropy(apply_class_balancing=True, gamma=3.0),
    tf.keras.losses.CategoricalFocalCrossentropy(alpha=[0.2, 0.3, 0.5], label_smoothing=0.1),
    tf.keras.losses.SparseCategoricalCrossentropy(ignore_class=2)], ids=lambda loss: loss.name)
def test_losses_of_saved_models_go_both_ways(probe, tmp_path, loss):
    """A model whose loss and metrics Keras wrote trains here as it does there, and back."""
    random = np.random.default_rng(3)
    activation = "sigmoid" if loss.name.startswith("binary") else "softmax"
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation, input_shape=(4,))])
    sparse = isinstance(loss, tf.keras.losses.SparseCategoricalCrossentropy)
    metrics = [] if sparse else [
        tf.keras.metrics.F1Score(average="macro", threshold=0.3),
        tf.keras.metrics.FBetaScore(average="micro", beta=2.0),
        tf.keras.metrics.R2Score(class_aggregation="variance_weighted_average")]
    model.compile("sgd", loss, metrics=metrics)
    x = random.normal(size=(8, 4)).astype("float32")
    classes = random.integers(0, 3, 8)
    y = classes if sparse else np.eye(3, dtype="float32")[classes]
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(x),
                             "labels": as_json(y), "steps": 4, "save": str(tmp_path / "ours")})
    again = read(tmp_path / "ours")
    expected = [model.train_on_batch(x, y, return_dict=True)["loss"] for _ in range(4)]
    np.testing.assert_allclose(answer["losses"], expected, rtol=1e-5)
    assert again.loss.get_config() == loss.get_config()
    assert [m.get_config() for m in again.compiled_metrics._user_metrics or []] == [
        m.get_config() for m in metrics]
