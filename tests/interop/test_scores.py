"""F scores, R2, merged states and moving averages are Keras's and TensorFlow's."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json
from test_losses import random_for

F_CASES = [{"average": average, "threshold": threshold}
           for average in (None, "micro", "macro", "weighted") for threshold in (None, 0.5)]
R2_CASES = [{"class_aggregation": aggregation, "num_regressors": regressors}
            for aggregation in (None, "uniform_average", "variance_weighted_average")
            for regressors in (0, 3)]


def check_metric(probe, name, options, updates):
    metric = getattr(tf.keras.metrics, name)(**options)
    for labels, predictions, weight in updates:
        metric.update_state(labels, predictions, sample_weight=weight)
    ours = from_json(probe("metric", {"metric": name, "options": options, "updates": [
        {"labels": as_json(labels), "predictions": as_json(predictions),
         "sample_weight": as_json(weight)} for labels, predictions, weight in updates]}))
    expected = metric.result().numpy()
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", F_CASES, ids=lambda value: str(value))
@pytest.mark.parametrize("name,more", [("F1Score", {}), ("FBetaScore", {"beta": 0.5}),
                                       ("FBetaScore", {"beta": 2.0})])
def test_f_scores(probe, name, more, options, weighted):
    random = random_for(name, more, options, weighted)
    updates = []
    for rows in (5, 1, 8):
        labels = (random.random((rows, 4)) < 0.4).astype("float32")
        predictions = random.random((rows, 4)).astype("float32")
        predictions[0] = 0  # nothing is positive
        weight = random.random(rows).astype("float32") if weighted else None
        updates.append((labels, predictions, weight))
    check_metric(probe, name, {**options, **more}, updates)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", R2_CASES, ids=lambda value: str(value))
def test_r2(probe, options, weighted):
    random = random_for(options, weighted)
    updates = []
    for rows in (5, 1, 8):
        labels = random.normal(size=(rows, 3)).astype("float32")
        predictions = labels + 0.3 * random.normal(size=(rows, 3)).astype("float32")
        weight = random.random(rows).astype("float32") if weighted else None
        updates.append((labels, predictions, weight))
    check_metric(probe, "R2Score", options, updates)


@pytest.mark.parametrize("num_updates", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moving_averages(probe, tmp_path, dtype, num_updates):
    random = np.random.default_rng(8)
    initial = [random.normal(size=(2, 3)).astype(dtype), random.normal(size=()).astype(dtype)]
    steps = [[random.normal(size=v.shape).astype(dtype) for v in initial] for _ in range(12)]
    variables = [tf.Variable(v, name=f"v{i}") for i, v in enumerate(initial)]
    count = tf.Variable(0.0)
    ema = tf.train.ExponentialMovingAverage(0.875, num_updates=count if num_updates else None)
    ema.apply(variables)
    expected = []
    for step in steps:
        for variable, value in zip(variables, step):
            variable.assign(value)
        count.assign_add(1)
        ema.apply(variables)
        expected.append([ema.average(v).numpy() for v in variables])
    request = {"decay": 0.875, "num_updates": num_updates, "initial": [as_json(v) for v in initial],
               "steps": [[as_json(v) for v in step] for step in steps]}
    answer = probe("average_variables", {**request, "save": str(tmp_path / "ours")})
    # TensorFlow numbers names that it has given before, in other cases of this test.
    for name, theirs in zip(answer["names"], [ema.average_name(v) for v in variables]):
        assert theirs.startswith(name)
    for ours, theirs in zip(answer["averages"], expected):
        for mine, its in zip(ours, theirs):
            np.testing.assert_allclose(from_json(mine), its, rtol=1e-6, atol=1e-7)
    # Saved as variables, both ways.
    averages = [ema.average(v) for v in variables]
    for average in averages:
        average.assign(tf.zeros_like(average))
    tf.train.Checkpoint(averages=averages).read(str(tmp_path / "ours")).assert_consumed()
    np.testing.assert_allclose(averages[0].numpy(), expected[-1][0], rtol=1e-6, atol=1e-7)
    path = tf.train.Checkpoint(averages=averages).write(str(tmp_path / "theirs"))
    answer = probe("average_variables", {**request, "steps": [], "load": path,
                                         "save": str(tmp_path / "again")})
    again = tf.train.load_checkpoint(str(tmp_path / "again"))
    np.testing.assert_array_equal(
        again.get_tensor("averages/0/.ATTRIBUTES/VARIABLE_VALUE"), averages[0].numpy())
