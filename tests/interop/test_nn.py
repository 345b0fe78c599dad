"""Functions of nn:: and random:: give TensorFlow 2.15's results, gradients and random numbers."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

rng = np.random.default_rng(7)


def floats(*shape, dtype="float32"):
    return rng.normal(size=shape).astype(dtype)


def call(probe, function, inputs, cotangent=None, **options):
    request = {"function": function, "inputs": [as_json(array) for array in inputs], "options": options}
    if cotangent is not None:
        request["cotangent"] = as_json(np.asarray(cotangent))
    return probe("nn", request)


def compare(probe, function, expected_of, inputs, rtol=1e-5, **options):
    """The first output, and its gradients by the floating inputs."""
    tensors = [tf.constant(array) for array in inputs]
    floating = [tensor for tensor in tensors if tensor.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floating)
        expected = expected_of(*tensors)
    cotangent = floats(*expected.shape, dtype=expected.dtype.as_numpy_dtype)
    with tf.GradientTape() as tape:
        tape.watch(floating)
        weighted = tf.reduce_sum(expected_of(*tensors) * cotangent)
    gradients = dict(zip([id(tensor) for tensor in floating], tape.gradient(weighted, floating)))
    ours = call(probe, function, inputs, cotangent, **options)
    assert "error" not in ours, ours
    np.testing.assert_allclose(from_json(ours["outputs"][0]), expected, rtol=rtol, atol=rtol)
    for tensor, gradient in zip(tensors, ours["gradients"]):
        wanted = gradients.get(id(tensor))
        if wanted is None:
            assert gradient is None or not np.any(from_json(gradient))
            continue
        wanted = tf.convert_to_tensor(wanted)
        np.testing.assert_allclose(from_json(gradient), wanted, rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("axes", [[0], [0, 1, 2], [-1], [1, 2]])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments(probe, axes, keepdims, dtype):
    x = floats(3, 4, 5, dtype=dtype)
    compare(probe, "moments", lambda x: sum(tf.nn.moments(x, axes, keepdims=keepdims)), [x], axes=axes,
            keepdims=keepdims)
    ours = call(probe, "moments", [x], axes=axes, keepdims=keepdims)["outputs"][1:]
    for found, expected in zip(ours, tf.nn.moments(x, axes, keepdims=keepdims)):
        np.testing.assert_allclose(from_json(found), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axis,epsilon", [([], 1e-12), ([1], 1e-12), ([0, 2], 1.0)])
def test_l2_normalize(probe, axis, epsilon):
    compare(probe, "l2_normalize", lambda x: tf.nn.l2_normalize(x, axis or None, epsilon), [floats(3, 4, 5)],
            axis=axis, epsilon=epsilon)


def test_weighted_cross_entropy(probe):
    for shape in [(), (3,), (2, 3)]:
        labels, logits = rng.uniform(size=(2, 3)).astype("float32"), 20 * floats(2, 3)
        weight = rng.uniform(0, 3, size=shape).astype("float32")
        compare(probe, "weighted_cross_entropy_with_logits", tf.nn.weighted_cross_entropy_with_logits,
                [labels, logits, weight])


def ctc_case(time_major, classes, blank):
    frames, batch, most = 9, 5, 4
    blank %= classes
    lengths = rng.integers(0, most + 1, batch)
    labels = rng.integers(0, classes - 1, (batch, most))
    labels = labels + (labels >= blank)  # never the blank
    logit_lengths = np.maximum(rng.integers(3, frames + 1, batch), 2 * lengths)
    logits = floats(frames, batch, classes)
    return labels, logits if time_major else logits.transpose(1, 0, 2).copy(), lengths, logit_lengths


@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("blank", [0, 2, -1])
def test_ctc_loss(probe, time_major, blank):
    for classes in [3, 6]:
        labels, logits, lengths, logit_lengths = ctc_case(time_major, classes, blank)
        options = {"logits_time_major": time_major, "blank_index": blank}
        compare(probe, "ctc_loss",
                lambda labels, logits, lengths, logit_lengths: tf.nn.ctc_loss(
                    labels, logits, lengths, logit_lengths, **options),
                [labels, logits, lengths, logit_lengths], rtol=1e-4, **options)  # float64 fails in TensorFlow


@pytest.mark.parametrize("blank", [0, -1])
def test_ctc_loss_of_sparse_labels(probe, blank):
    labels, logits, lengths, logit_lengths = ctc_case(True, 5, blank)
    lengths = np.maximum(lengths, 1)  # TensorFlow refuses a sequence without labels
    labels = np.where(np.arange(labels.shape[1]) < lengths[:, None], labels, -1)
    sparse = tf.SparseTensor(np.argwhere(labels >= 0), labels[labels >= 0].astype("int32"), labels.shape)
    compare(probe, "ctc_loss_sparse",
            lambda _, logits, logit_lengths: tf.nn.ctc_loss(sparse, logits, None, logit_lengths, blank_index=blank),
            [labels, logits, np.maximum(logit_lengths, 2 * lengths).astype("int32")], rtol=1e-4, blank_index=blank)


def test_ctc_loss_without_enough_frames(probe):
    """Is infinite, as with TensorFlow's sparse labels; its gradient is 0 here."""
    logits = floats(2, 2, 3)
    ours = call(probe, "ctc_loss_sparse", [np.array([[1, 1], [1, 2]]), logits, np.array([2, 2])], np.ones(2, "float32"),
                blank_index=0)
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], [1, 1, 1, 2], [2, 2])
    expected = tf.nn.ctc_loss(sparse, logits, None, [2, 2], blank_index=0)
    first, second = ours["outputs"][0]["values"]
    assert first is None and np.isinf(expected[0])  # JSON has no infinity
    np.testing.assert_allclose(second, expected[1], rtol=1e-5)
    assert not np.any(from_json(ours["gradients"][1])[:, 0])


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("blank", [None, 0, -2])
def test_ctc_greedy_decoder(probe, merge, blank):
    for _ in range(5):
        logits, lengths = floats(7, 4, 3), rng.integers(0, 8, 4)
        (decoded,), sums = tf.nn.ctc_greedy_decoder(logits, lengths.astype("int32"), merge, blank)
        options = {} if blank is None else {"blank_index": blank}
        ours = [from_json(tensor) for tensor in
                call(probe, "ctc_greedy_decoder", [logits, lengths], merge_repeated=merge, **options)["outputs"]]
        np.testing.assert_allclose(ours[0], sums, rtol=1e-5)
        np.testing.assert_array_equal(ours[1], decoded.indices)
        np.testing.assert_array_equal(ours[2], decoded.values)
        np.testing.assert_array_equal(ours[3], decoded.dense_shape)


@pytest.mark.parametrize("num_true", [1, 2])
@pytest.mark.parametrize("remove", [True, False])
@pytest.mark.parametrize("function", ["sampled_softmax_loss", "nce_loss"])
@pytest.mark.parametrize("sampler", [tf.random.log_uniform_candidate_sampler, tf.random.uniform_candidate_sampler])
def test_sampled_losses(probe, num_true, remove, function, sampler):
    classes, sampled, batch, dim = 12, 6, 5, 3
    labels = rng.integers(0, classes, (batch, num_true))
    if num_true == 2:
        labels[:, 1] = (labels[:, 0] + 1) % classes
    for unique in [True] if remove else [True, False]:  # of equal candidates TensorFlow removes the last alone
        candidates = [value.numpy() for value in sampler(labels, num_true, sampled, unique, classes, seed=1)]
        loss = getattr(tf.nn, function)
        compare(probe, function,
                lambda weights, biases, labels, inputs, *values: loss(
                    weights, biases, labels, inputs, sampled, classes, num_true, sampled_values=values,
                    remove_accidental_hits=remove),
                [floats(classes, dim), floats(classes), labels, floats(batch, dim), *candidates], num_sampled=sampled,
                num_classes=classes, num_true=num_true, remove_accidental_hits=remove)


SEEDS = [(0, 0), (1, 2), (-3, 2**40 + 5), (2**63 - 1, -(2**63))]
SHAPES = [[], [1], [3], [4, 5], [1001]]


def as_seed(seed):
    return tf.constant(seed, tf.int64)


def same_bits(ours, expected):
    np.testing.assert_array_equal(from_json(ours["outputs"][0]), expected.numpy().astype(ours["outputs"][0]["dtype"]))


@pytest.mark.parametrize("seed", SEEDS)
def test_stateless_numbers_have_the_same_bits(probe, seed):
    for shape in SHAPES:
        for dtype in ["float32", "float64", "float16", "bfloat16"]:
            same = dict(shape=shape, seed=seed, dtype=dtype)
            for low, high in [(0.0, 1.0), (-3.5, 8.25)]:
                expected = tf.random.stateless_uniform(shape, as_seed(seed), low, high, dtype)
                compare_wide(call(probe, "stateless_uniform", [], minval=low, maxval=high, **same), expected)
            for mean, stddev in [(0.0, 1.0), (-2.0, 0.5)]:
                expected = tf.random.stateless_normal(shape, as_seed(seed), mean, stddev, dtype)
                compare_wide(call(probe, "stateless_normal", [], mean=mean, stddev=stddev, **same), expected,
                             rtol=2e-16 if dtype == "float64" else 0)
                expected = tf.random.stateless_truncated_normal(shape, as_seed(seed), mean, stddev, dtype)
                compare_wide(call(probe, "stateless_truncated_normal", [], mean=mean, stddev=stddev, **same), expected,
                             rtol=2e-16 if dtype == "float64" else 0)


def compare_wide(ours, expected, rtol=0):
    """The probe gives 16-bit numbers as float64."""
    np.testing.assert_allclose(np.array(ours["outputs"][0]["values"]),
                               np.ravel(tf.cast(expected, tf.float64).numpy()), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_stateless_integers(probe, seed, dtype):
    for shape in SHAPES:
        same = dict(shape=shape, seed=seed, dtype=dtype)
        same_bits(call(probe, "stateless_uniform_full_int", [], **same),
                  tf.random.stateless_uniform(shape, as_seed(seed), None, None, dtype))
        for low, high in [(0, 10), (-7, 2**31 - 1)]:
            same_bits(call(probe, "stateless_uniform", [], minval=low, maxval=high, **same),
                      tf.random.stateless_uniform(shape, as_seed(seed), low, high, dtype))


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds_orders_and_classes(probe, seed):
    same_bits(call(probe, "split", [], seed=seed, num=3), tf.random.split(as_seed(seed), 3))
    same_bits(call(probe, "fold_in", [], seed=seed, data=-9), tf.random.fold_in(as_seed(seed), tf.constant(-9, tf.int64)))
    rows = floats(17, 2)
    same_bits(call(probe, "stateless_shuffle", [rows], seed=seed),
              tf.random.experimental.stateless_shuffle(rows, as_seed(seed)))
    logits = floats(3, 5)
    logits[1, 2] = -1e30
    same_bits(call(probe, "stateless_categorical", [logits], seed=seed, num_samples=50),
              tf.random.stateless_categorical(logits, 50, as_seed(seed)))


def test_distributions_of_our_own(probe):
    """Gamma, Poisson and binomial numbers: their means and variances."""
    shape, seed = [20000, 3], (4, 2)
    first, second = np.array([0.4, 3.0, 40.0], "float32"), np.array([0.5, 1.0, 2.0], "float32")
    chances = np.array([0.1, 0.5, 0.9], "float32")
    pairs = [
        ("stateless_gamma", [first, second], tf.random.stateless_gamma(shape, seed, first, second)),
        ("stateless_poisson", [first], tf.random.stateless_poisson(shape, seed, first)),
        ("stateless_binomial", [first * 10, chances],
         tf.random.stateless_binomial(shape, seed, np.floor(first * 10), chances)),
    ]
    for function, inputs, expected in pairs:
        ours = from_json(call(probe, function, inputs, shape=shape, seed=seed)["outputs"][0])
        np.testing.assert_allclose(ours.mean(0), np.mean(expected, 0), rtol=0.04)
        np.testing.assert_allclose(ours.var(0), np.var(expected, 0), rtol=0.08)
