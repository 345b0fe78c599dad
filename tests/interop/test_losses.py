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


def softmax(scores, axis=-1):
    exponents = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponents / exponents.sum(axis=axis, keepdims=True)


def check_loss(probe, name, options, labels, predictions, sample_weight=None):
    keras_loss = getattr(tf.keras.losses, name)(**options)
    watched = tf.constant(predictions)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        expected = keras_loss(labels, watched, sample_weight=sample_weight)
    expected_gradient = tape.gradient(expected, watched).numpy()
    expected = expected.numpy()
    answer = probe("loss", {
        "loss": name, "options": options, "labels": as_json(labels),
        "predictions": as_json(predictions), "sample_weight": as_json(sample_weight)})
    ours = from_json(answer)
    assert ours.shape == expected.shape
    # Keras computes Huber in float32, and rounds LogCosh's constants to it, whatever the dtype is.
    coarse = name in ("Huber", "LogCosh")
    assert name == "Huber" or ours.dtype == expected.dtype
    tolerance = DTYPES["float32" if coarse else str(predictions.dtype)]
    np.testing.assert_allclose(ours, expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(from_json(answer["gradient"]), expected_gradient,
                               rtol=10 * tolerance, atol=10 * tolerance)


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


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("from_logits", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_categorical_crossentropy(probe, reduction, from_logits, dtype, smoothing, axis):
    random = random_for(reduction, from_logits, dtype, smoothing, axis)
    # Distributions: TensorFlow's gradient of logits takes it that labels add up to 1.
    labels = softmax(random.normal(size=(4, 3, 5)), axis).astype(dtype)
    predictions = (4 * random.normal(size=labels.shape) if from_logits
                   else random.random(size=labels.shape)).astype(dtype)
    check_loss(probe, "CategoricalCrossentropy",
               {"from_logits": from_logits, "label_smoothing": smoothing, "axis": axis,
                "reduction": reduction}, labels, predictions)


def numbers(random, shape):
    return random.normal(size=shape), random.normal(size=shape)


def positive(random, shape):
    return random.random(shape) + 0.1, random.random(shape) + 0.1


def distributions(random, shape):
    return softmax(random.normal(size=shape)), softmax(random.normal(size=shape))


def signs(random, shape):
    return np.sign(random.normal(size=shape)), random.normal(size=shape)


def zeros_and_ones(random, shape):
    return random.integers(0, 2, shape), random.normal(size=shape)


def one_hot(random, shape):
    return np.eye(shape[-1])[random.integers(0, shape[-1], shape[:-1])], random.normal(size=shape)


PLAIN_LOSSES = [
    ("MeanSquaredError", {}, numbers),
    ("MeanAbsoluteError", {}, numbers),
    ("MeanAbsolutePercentageError", {}, positive),
    ("MeanSquaredLogarithmicError", {}, numbers),
    ("LogCosh", {}, numbers),
    ("Huber", {}, numbers),
    ("Huber", {"delta": 0.25}, numbers),
    ("CosineSimilarity", {}, numbers),
    ("CosineSimilarity", {"axis": 1}, numbers),
    ("Hinge", {}, signs),
    ("Hinge", {}, zeros_and_ones),
    ("SquaredHinge", {}, signs),
    ("SquaredHinge", {}, zeros_and_ones),
    ("CategoricalHinge", {}, one_hot),
    ("KLDivergence", {}, distributions),
    ("Poisson", {}, positive),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name,options,data", PLAIN_LOSSES, ids=lambda value: str(
    getattr(value, "__name__", value)))
def test_losses_of_equal_shapes(probe, name, options, data, reduction, dtype, weighted):
    random = random_for(name, reduction, dtype, weighted)
    labels, predictions = (array.astype(dtype) for array in data(random, (5, 4, 3)))
    shape = np.delete(labels.shape, options.get("axis", -1))
    weight = random.random(shape).astype(dtype) if weighted else None
    check_loss(probe, name, {**options, "reduction": reduction}, labels, predictions, weight)


EDGE = 1e-7  # where Keras cuts probabilities

# Where the functions that losses are made of have kinks: the slope there is a choice.
KINKS = [
    ("BinaryCrossentropy", {"from_logits": True}, [[1, 0, 0.5]], [[0, 0, 0]]),
    ("BinaryCrossentropy", {"from_logits": True, "label_smoothing": 0.2}, [[1, 0]], [[0, 0]]),
    ("BinaryCrossentropy", {}, [[1, 0, 1, 0]], [[0, 0, 1, 1]]),
    ("CategoricalCrossentropy", {}, [[1, 0, 0], [0, 1, 0]], [[1, 0, 0], [1, 0, 0]]),
    ("CategoricalCrossentropy", {"from_logits": True}, [[1, 0]], [[0, 0]]),
    ("SparseCategoricalCrossentropy", {}, [0, 1], [[1, 0, 0], [1, 0, 0]]),
    ("MeanAbsoluteError", {}, [[0, 1, 2]], [[0, 1, 3]]),
    ("MeanAbsolutePercentageError", {}, [[1, 2]], [[1, 3]]),
    ("MeanSquaredLogarithmicError", {}, [[1, 0]], [[0, 0]]),
    ("MeanSquaredLogarithmicError", {}, [[1, 0]], [[EDGE, 1]]),
    ("LogCosh", {}, [[0, 0, 0]], [[0, 12, -12]]),
    ("Huber", {}, [[0, 0, 0]], [[0, 1, -1]]),
    ("Huber", {"delta": 0.25}, [[0, 0]], [[0.25, -0.25]]),
    ("Hinge", {}, [[1, -1, 1]], [[1, -1, 0]]),
    ("SquaredHinge", {}, [[1, -1]], [[1, -1]]),
    ("CategoricalHinge", {}, [[1, 0, 0]] * 3, [[1, 0, 0], [0, 0, 0], [0, 2, 2]]),
    ("KLDivergence", {}, [[0.5, 0.5, 0]], [[0, 1, EDGE]]),
    ("Poisson", {}, [[0, 1]], [[0, 0.5]]),
    ("CosineSimilarity", {}, [[0, 1]], [[0, 0]]),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name,options,labels,predictions", KINKS, ids=str)
def test_slopes_at_kinks(probe, name, options, labels, predictions, dtype):
    labels = np.array(labels, "int64" if name.startswith("Sparse") else dtype)
    check_loss(probe, name, {**options, "reduction": "none"}, labels,
               np.array(predictions, dtype))


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


def check_metric(probe, name, updates, options=None):
    keras_options = dict(options or {})
    if "num_labels" in keras_options:
        keras_options["multi_label"] = True
    metric = getattr(tf.keras.metrics, name)(**keras_options)
    for update in updates:
        weight = update["sample_weight"]
        if "values" in update:
            metric.update_state(update["values"], sample_weight=weight)
        else:
            metric.update_state(update["labels"], update["predictions"], sample_weight=weight)
    given = {key: as_json(value) if isinstance(value, np.ndarray) else value
             for key, value in (options or {}).items()}
    ours = probe("metric", {"metric": name, "options": given, "updates": [
        {key: as_json(value) for key, value in update.items()} for update in updates]})
    np.testing.assert_allclose(from_json(ours), metric.result().numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["Mean", "Sum"])
def test_mean_and_sum(probe, name, weighted):
    random = random_for(weighted)
    check_metric(probe, name, [
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


def updates_of(random, make, weighted, shape=(4, 3), weight_shape=None):
    """Several batches of unlike sizes."""
    updates = []
    for rows in (shape[0], 1, 3 * shape[0]):
        labels, predictions = make(random, (rows, *shape[1:]))
        sizes = (rows,) if weight_shape is None else (rows, *weight_shape)
        updates.append({"labels": np.asarray(labels, "float32"),
                        "predictions": np.asarray(predictions, "float32"), "sample_weight":
                        random.random(sizes).astype("float32") if weighted else None})
    return updates


MEAN_METRICS = [
    ("MeanSquaredError", numbers), ("MeanAbsoluteError", numbers),
    ("MeanAbsolutePercentageError", positive), ("MeanSquaredLogarithmicError", numbers),
    ("LogCoshError", numbers), ("CosineSimilarity", numbers), ("Hinge", zeros_and_ones),
    ("SquaredHinge", signs), ("CategoricalHinge", one_hot), ("KLDivergence", distributions),
    ("Poisson", positive), ("RootMeanSquaredError", numbers), ("CategoricalAccuracy", one_hot),
    ("BinaryCrossentropy", positive), ("CategoricalCrossentropy", distributions),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name,data", MEAN_METRICS, ids=lambda value: str(
    getattr(value, "__name__", value)))
def test_means(probe, name, data, weighted):
    check_metric(probe, name, updates_of(random_for(name, weighted), data, weighted))


def decisions(random, shape):
    return random.integers(0, 2, shape), random.random(shape)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"thresholds": [0.3]}, {"thresholds": [0.8, 0.2, 0.5]},
                                     {"thresholds": [0.0, 0.5, 1.0]}], ids=str)
@pytest.mark.parametrize("name", ["TruePositives", "TrueNegatives", "FalsePositives",
                                  "FalseNegatives", "Precision", "Recall"])
def test_confusion(probe, name, options, weighted):
    updates = updates_of(random_for(name, str(options), weighted), decisions, weighted, (40,))
    check_metric(probe, name, updates, options)


@pytest.mark.parametrize("options", [{"top_k": 2}, {"class_id": 1}, {"top_k": 2, "class_id": 3},
                                     {"top_k": 3, "thresholds": [0.6]}], ids=str)
@pytest.mark.parametrize("name", ["Precision", "Recall"])
def test_precision_of_classes(probe, name, options):
    updates = updates_of(random_for(name, str(options)), decisions, True, (20, 5), (1,))
    check_metric(probe, name, updates, options)


AUC_OPTIONS = [
    {}, {"curve": "PR"}, {"summation_method": "minoring"}, {"summation_method": "majoring"},
    {"curve": "PR", "summation_method": "minoring"}, {"num_thresholds": 7},
    {"thresholds": [0.2, 0.3, 0.9]}, {"curve": "PR", "thresholds": [0.25, 0.5, 0.75]},
    {"num_labels": 4}, {"num_labels": 4, "label_weights": [1.0, 0.0, 2.0, 0.5], "curve": "PR"},
    {"label_weights": [1.0, 0.5, 2.0, 0.5]}, {"from_logits": True},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", AUC_OPTIONS, ids=str)
def test_auc(probe, options, weighted):
    updates = updates_of(random_for(str(options), weighted), decisions, weighted, (50, 4), (1,))
    check_metric(probe, "AUC", updates, options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"num_thresholds": 9}, {"num_thresholds": 1}], ids=str)
@pytest.mark.parametrize("name,share", [
    ("SensitivityAtSpecificity", "specificity"), ("SpecificityAtSensitivity", "sensitivity"),
    ("PrecisionAtRecall", "recall"), ("RecallAtPrecision", "precision")])
def test_best_thresholds(probe, name, share, options, weighted):
    random = random_for(name, str(options), weighted)
    # With weights, how their sums round decides which thresholds have none or all of a share.
    for least in (0.1, 0.4, 0.7, 0.9) if weighted else (0.0, 0.4, 0.7, 1.0):
        check_metric(probe, name, updates_of(random, decisions, weighted, (40,)),
                     {share: least, **options})


def test_best_threshold_of_a_class(probe):
    updates = updates_of(random_for("class"), decisions, True, (20, 5), (1,))
    check_metric(probe, "RecallAtPrecision", updates, {"precision": 0.5, "class_id": 2})


def classes_of(random, shape):
    return random.integers(0, 4, shape), random.integers(0, 4, shape)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name,options,data", [
    ("MeanIoU", {"num_classes": 4}, classes_of), ("MeanIoU", {"num_classes": 6}, classes_of),
    ("MeanIoU", {"num_classes": 4, "ignore_class": 2}, classes_of),
    ("IoU", {"num_classes": 5, "target_class_ids": [1, 3, 4]}, classes_of),
    ("BinaryIoU", {}, decisions), ("BinaryIoU", {"target_class_ids": [1], "threshold": 0.7}, decisions),
], ids=str)
def test_intersections_over_unions(probe, name, options, data, weighted):
    updates = updates_of(random_for(name, str(options), weighted), data, weighted, (40,))
    check_metric(probe, name, updates, options)


@pytest.mark.parametrize("name,options", [
    ("OneHotIoU", {"num_classes": 4, "target_class_ids": [0, 2]}),
    ("OneHotMeanIoU", {"num_classes": 4}),
    ("MeanIoU", {"num_classes": 4, "sparse_y_true": False, "sparse_y_pred": False})], ids=str)
def test_intersections_of_one_hot_labels(probe, name, options):
    check_metric(probe, name, updates_of(random_for(name), one_hot, True, (40, 4)), options)


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_tensor(probe, weighted):
    random = random_for(weighted)
    check_metric(probe, "MeanTensor", [
        {"values": random.normal(size=(3, 2)).astype("float32"),
         "sample_weight": random.random((3,)).astype("float32") if weighted else None}
        for _ in range(3)])


@pytest.mark.parametrize("weighted", [False, True])
def test_mean_relative_error(probe, weighted):
    random = random_for(weighted)
    normalizer = np.float32([1, 0, 2])
    check_metric(probe, "MeanRelativeError", updates_of(random, numbers, weighted),
                 {"normalizer": normalizer})


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", ["TopKCategoricalAccuracy", "SparseTopKCategoricalAccuracy"])
def test_top_k(probe, name, k):
    def classes(random, shape):
        labels, scores = one_hot(random, shape)
        return (labels if name.startswith("Top") else labels.argmax(-1)), scores
    check_metric(probe, name, updates_of(random_for(name, k), classes, True, (30, 6)), {"k": k})


@pytest.mark.parametrize("threshold", [0.5, 0.7])
def test_binary_accuracy(probe, threshold):
    check_metric(probe, "BinaryAccuracy", updates_of(random_for(threshold), decisions, True),
                 {"threshold": threshold})
