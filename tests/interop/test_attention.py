"""Attention, recurrent layers of any cell, TimeDistributed and EinsumDense: outputs, gradients, masks and
configurations as Keras's; models with them go both ways."""

import json

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json
from test_models import assert_outputs, inputs_of, probe_json, read, write

keras = tf.keras
L = keras.layers
nest = tf.nest
OPTIONS_OF_CALLS = ("use_causal_mask", "return_attention_scores")


class LeakyCell(L.Layer):
    """As probe_attention.cc has it."""

    def __init__(self, units, leak, **kwargs):
        super().__init__(**kwargs)
        self.units, self.leak = units, leak
        self.state_size, self.output_size = [units, 1], units + 1

    def build(self, input_shape):
        self.kernel = self.add_weight("kernel", (input_shape[-1], self.units))

    def call(self, x, states):
        h, count = self.leak * states[0] + tf.tanh(x @ self.kernel), states[1] + 1
        return tf.concat([h, count * h[:, :1]], 1), [h, count]

    def get_config(self):
        return {**super().get_config(), "units": self.units, "leak": self.leak}


# Layer, shapes of its inputs, and arguments of the call.
CASES = {
    "attention": (lambda: L.Attention(), [(2, 5, 4), (2, 6, 4)], {}),
    "attention with keys": (lambda: L.Attention(use_scale=True), [(2, 5, 4), (2, 6, 3), (2, 6, 4)], {}),
    "attention by concat": (lambda: L.Attention(score_mode="concat"), [(2, 5, 4), (2, 6, 4)], {}),
    "scaled attention by concat": (lambda: L.Attention(use_scale=True, score_mode="concat"),
                                   [(2, 5, 4), (2, 5, 4)], {"use_causal_mask": True}),
    "attention with scores": (lambda: L.Attention(dropout=0.5), [(2, 5, 4), (2, 6, 4)],
                              {"return_attention_scores": True}),
    "causal attention with scores": (lambda: L.Attention(), [(2, 3, 4), (2, 6, 4)],
                                     {"return_attention_scores": True, "use_causal_mask": True}),
    "attention of rank 4": (lambda: L.Attention(use_scale=True), [(2, 3, 5, 4), (2, 3, 6, 4)], {}),
    "additive attention": (lambda: L.AdditiveAttention(), [(2, 5, 4), (2, 6, 4)], {}),
    "additive attention with keys": (lambda: L.AdditiveAttention(use_scale=False),
                                     [(2, 5, 4), (2, 6, 3), (2, 6, 4)], {"return_attention_scores": True}),
    "causal additive attention": (lambda: L.AdditiveAttention(), [(2, 5, 4), (2, 5, 4)],
                                  {"use_causal_mask": True, "return_attention_scores": True}),
    "heads with scores": (lambda: L.MultiHeadAttention(2, 3), [(2, 5, 4), (2, 6, 3)],
                          {"return_attention_scores": True}),
    "causal heads with scores": (lambda: L.MultiHeadAttention(2, 3, value_dim=2, output_shape=7, use_bias=False),
                                 [(2, 5, 4), (2, 6, 3), (2, 6, 2)],
                                 {"return_attention_scores": True, "use_causal_mask": True}),
    "heads with a mask": (lambda: L.MultiHeadAttention(2, 3), [(2, 5, 4), (2, 6, 3), (2, 6, 3), "mask"],
                          {"return_attention_scores": True}),
    "heads over an image": (lambda: L.MultiHeadAttention(2, 3), [(2, 3, 4, 5), (2, 2, 3, 5)],
                            {"return_attention_scores": True}),
    "heads over rows": (lambda: L.MultiHeadAttention(2, 3, attention_axes=2), [(2, 3, 4, 5), (2, 3, 6, 5)],
                        {"return_attention_scores": True}),
    "heads over columns": (lambda: L.MultiHeadAttention(2, 3, attention_axes=(1,), output_shape=(3, 2)),
                           [(2, 3, 4, 5), (2, 6, 4, 5)], {"return_attention_scores": True}),
    "heads over two of three": (lambda: L.MultiHeadAttention(2, 3, attention_axes=(3, 1)),
                                [(2, 3, 4, 2, 5), (2, 2, 4, 3, 5)], {"return_attention_scores": True}),
    "einsum dense": (lambda: L.EinsumDense("ab,bc->ac", 6, bias_axes="c", activation="relu"), [(3, 4)], {}),
    "einsum over a sequence": (lambda: L.EinsumDense("abc,cd->abd", (None, 6), bias_axes="d"), [(3, 5, 4)], {}),
    "einsum of all but the batch": (lambda: L.EinsumDense("abc,bcd->ad", 6, activation="softmax"), [(3, 5, 4)], {}),
    "einsum on the left": (lambda: L.EinsumDense("...x,xyz->...yz", (2, 3), bias_axes="yz"), [(3, 5, 4)], {}),
    "einsum on the left with one bias": (lambda: L.EinsumDense("...x,xyz->...yz", (2, 3), bias_axes="y"),
                                         [(3, 2, 5, 4)], {}),
    "einsum on the right": (lambda: L.EinsumDense("ab...,bc->ac...", 6, bias_axes="c"), [(3, 4, 5)], {}),
    "einsum that keeps a letter": (lambda: L.EinsumDense("abc,bcd->abd", (5, 6), bias_axes="bd",
                                                         kernel_regularizer="l2"), [(3, 5, 4)], {}),
    "einsum in another order": (lambda: L.EinsumDense("abc,dc->adb", (6, 5), bias_axes="d"), [(3, 5, 4)], {}),
    "rnn of lstm": (lambda: L.RNN(L.LSTMCell(3)), [(2, 5, 4)], {}),
    "rnn of lstm with all": (lambda: L.RNN(L.LSTMCell(3, unit_forget_bias=False), return_sequences=True,
                                           return_state=True, go_backwards=True), [(2, 5, 4)], {}),
    "rnn of lstm with states": (lambda: L.RNN(L.LSTMCell(3), return_state=True), [(2, 5, 4), (2, 3), (2, 3)], {}),
    "rnn of relu lstm": (lambda: L.RNN(L.LSTMCell(3, activation="relu", recurrent_activation="hard_sigmoid"),
                                       return_sequences=True, unroll=True), [(2, 5, 4)], {}),
    "rnn of gru": (lambda: L.RNN(L.GRUCell(3), return_sequences=True), [(2, 5, 4)], {}),
    "rnn of gru before": (lambda: L.RNN(L.GRUCell(3, reset_after=False), return_state=True), [(2, 5, 4)], {}),
    "rnn of gru without bias": (lambda: L.RNN(L.GRUCell(3, use_bias=False), go_backwards=True), [(2, 5, 4)], {}),
    "rnn of simple": (lambda: L.RNN(L.SimpleRNNCell(3), return_sequences=True), [(2, 5, 4), (2, 3)], {}),
    "rnn of relu simple": (lambda: L.RNN(L.SimpleRNNCell(3, activation="relu", dropout=0.5)), [(2, 5, 4)], {}),
    "rnn by time": (lambda: L.RNN(L.LSTMCell(3), return_sequences=True, return_state=True, time_major=True),
                    [(5, 2, 4)], {}),
    "rnn of a stack": (lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2), L.SimpleRNNCell(4)], return_sequences=True,
                                     return_state=True), [(2, 5, 4)], {}),
    "rnn of a stack with states": (lambda: L.RNN([L.LSTMCell(3), L.GRUCell(2)]),
                                   [(2, 5, 4), [(2, 3), (2, 3)], (2, 2)], {}),
    "rnn of an own cell": (lambda: L.RNN(LeakyCell(3, 0.5), return_sequences=True, return_state=True),
                           [(2, 5, 4)], {}),
    "rnn of own cells": (lambda: L.RNN([LeakyCell(3, 0.5), L.LSTMCell(2), LeakyCell(2, 0.25)], return_state=True,
                                       go_backwards=True), [(2, 5, 4)], {}),
    "both ways of lstm": (lambda: L.Bidirectional(L.RNN(L.LSTMCell(3), return_sequences=True)), [(2, 5, 4)], {}),
    "both ways of a stack": (lambda: L.Bidirectional(
        L.RNN([L.LSTMCell(3), LeakyCell(2, 0.5)], return_state=True), merge_mode="sum"), [(2, 5, 4)], {}),
    "both ways by time": (lambda: L.Bidirectional(L.RNN(L.GRUCell(3), return_sequences=True, time_major=True),
                                                  merge_mode=None), [(5, 2, 4)], {}),
    "both ways of unlike cells": (lambda: L.Bidirectional(
        L.RNN(L.LSTMCell(3)), backward_layer=L.RNN(L.GRUCell(2), go_backwards=True)), [(2, 5, 4)], {}),
    "dense at each step": (lambda: L.TimeDistributed(L.Dense(3, activation="tanh")), [(2, 5, 4)], {}),
    "pictures at each step": (lambda: L.TimeDistributed(L.Conv2D(2, 3)), [(2, 3, 5, 6, 2)], {}),
    "normalization at each step": (lambda: L.TimeDistributed(L.BatchNormalization()), [(4, 5, 3)], {}),
    "sequences at each step": (lambda: L.TimeDistributed(L.LSTM(3, return_sequences=True)), [(2, 3, 5, 4)], {}),
    "pairs at each step": (lambda: L.TimeDistributed(L.Concatenate()), [(2, 5, 4), (2, 5, 3)], {}),
    "a model at each step": (lambda: L.TimeDistributed(keras.Sequential([
        keras.Input((5, 4)), L.GRU(3, return_sequences=True), L.BatchNormalization(), L.Flatten(), L.Dense(2)])),
        [(2, 3, 5, 4)], {}),
    "steps of steps": (lambda: L.TimeDistributed(L.TimeDistributed(L.Dense(2))), [(2, 3, 5, 4)], {}),
}

# Masks of the inputs of a case: the shapes, or None.
MASKED = [
    ("attention", [None, (2, 6)]), ("attention", [(2, 5), None]), ("attention with keys", [(2, 5), (2, 6), None]),
    ("scaled attention by concat", [(2, 5), (2, 5)]), ("attention with scores", [None, (2, 6)]),
    ("additive attention", [(2, 5), (2, 6)]), ("causal additive attention", [(2, 5), (2, 5)]),
    ("heads with scores", [(2, 5), (2, 6)]), ("heads with scores", [None, (2, 6)]),
    ("causal heads with scores", [(2, 5), None, (2, 6)]), ("heads with a mask", [(2, 5), (2, 6), None, None]),
    ("rnn of lstm", [(2, 5)]), ("rnn of lstm with all", [(2, 5)]), ("rnn of gru", [(2, 5)]),
    ("rnn of gru before", [(2, 5)]), ("rnn of simple", [(2, 5), None]), ("rnn by time", [(5, 2)]),
    ("rnn of a stack", [(2, 5)]), ("rnn of own cells", [(2, 5)]), ("rnn of an own cell", [(2, 5)]),
    ("both ways of lstm", [(2, 5)]), ("both ways of a stack", [(2, 5)]),
    ("dense at each step", [(2, 5)]), ("normalization at each step", [(4, 5)]),
    ("sequences at each step", [(2, 3, 5)]),
]


def make_inputs(rng, shapes):
    def one(shape):
        if shape == "mask":
            return (rng.random(size=(2, 5, 6)) < 0.7).astype("int64")
        return rng.normal(size=shape).astype("float32")

    return [[one(s) for s in shape] if isinstance(shape, list) else one(shape) for shape in shapes]


def plain(config):
    return json.loads(json.dumps(config, default=lambda value: dict(value) if hasattr(value, "keys") else float(value)))


def call(layer, inputs, arguments, **more):
    if isinstance(layer, L.MultiHeadAttention):
        names = ("query", "value", "key", "attention_mask")
        return layer(**dict(zip(names, inputs)), **arguments, **more)
    whole = inputs[0] if len(inputs) == 1 else inputs
    return layer(whole, **arguments, **more)


def takes_training(layer):
    return isinstance(layer, (L.TimeDistributed, L.RNN, L.Bidirectional, L.Attention, L.MultiHeadAttention))


def compare(probe, case, masks=(), training=False):
    make, shapes, arguments = CASES[case] if isinstance(case, str) else case
    rng = np.random.default_rng(list(repr((case if isinstance(case, str) else shapes, masks)).encode()))
    layer = make()
    config = {**plain(layer.get_config()), **arguments}
    arrays = make_inputs(rng, shapes)
    inputs = nest.map_structure(tf.constant, arrays)
    marks = [None if shape is None else rng.random(size=shape) < 0.6 for shape in masks]
    for mark in marks:
        if mark is not None:
            mark[:, 0] = True
    for tensor, mark in zip(nest.flatten(inputs), marks):
        if mark is not None:
            tensor._keras_mask = tf.constant(mark)
    more = {"training": training} if takes_training(layer) else {}
    call(layer, inputs, arguments, **more)
    weights = [(rng.random(size=w.shape) * 0.6 + 0.2).astype("float32") for w in layer.get_weights()]
    layer.set_weights(weights)
    with tf.GradientTape() as tape:
        watched = [tensor for tensor in nest.flatten(inputs) if tensor.dtype.is_floating]
        tape.watch(watched)
        outputs = nest.flatten(call(layer, inputs, arguments, **more))
        flat = [tf.reshape(output, [-1]) for output in outputs]
        loss = tf.add_n([tf.reduce_sum(x * tf.cos(tf.range(tf.size(x), dtype=tf.float32))) for x in flat])
    gradients = tape.gradient(loss, watched + layer.trainable_variables, unconnected_gradients="zero")

    given = nest.map_structure(as_json, arrays)
    answer = probe("sequence_layer", {
        "layer": type(layer).__name__, "config": config, "training": training,
        "inputs": given[0] if len(given) == 1 else given,
        "masks": [as_json(None if mark is None else mark.astype("int64")) for mark in marks],
        "weights": [as_json(weight) for weight in weights]})
    assert "error" not in answer, answer
    assert_outputs([from_json(output) for output in answer["outputs"]], outputs)
    assert len(answer["gradients"]) == len(gradients)
    for ours, theirs in zip(answer["gradients"], gradients):
        np.testing.assert_allclose(from_json(ours), theirs.numpy(), rtol=1e-4, atol=1e-5)
    for ours, theirs in zip(answer["weights"], layer.get_weights(), strict=True):
        np.testing.assert_allclose(from_json(ours), theirs, rtol=1e-5, atol=1e-5)
    # Keras's scores of heads keep what marked them in the softmax.
    count = 1 if isinstance(layer, L.MultiHeadAttention) else len(outputs)
    for ours, theirs in zip(answer["masks"][:count], outputs):
        mask = getattr(theirs, "_keras_mask", None)
        assert (ours is None) == (mask is None), (ours, mask)
        if mask is not None:
            np.testing.assert_array_equal(from_json(ours).astype(bool), mask.numpy())
    with keras.utils.custom_object_scope({"LeakyCell": LeakyCell}):
        again = type(layer).from_config({key: value for key, value in answer["config"].items()
                                         if key not in OPTIONS_OF_CALLS})
    call(again, inputs, arguments)
    again.set_weights(weights)
    assert_outputs([x.numpy() for x in nest.flatten(call(again, inputs, arguments, **more))], outputs)


@pytest.mark.parametrize("case", CASES)
def test_layers_follow_keras(probe, case):
    compare(probe, case)


# Not of a model: Keras calls it twice, the second time for its mask.
def test_layers_in_training_follow_keras(probe):
    compare(probe, "normalization at each step", training=True)


@pytest.mark.parametrize("case,masks", MASKED, ids=str)
def test_masked_steps_follow_keras(probe, case, masks):
    compare(probe, case, masks)


def test_masked_steps_are_not_normalized_by(probe):
    compare(probe, "normalization at each step", [(4, 5)], training=True)


@pytest.mark.parametrize("cell", [lambda: L.GRUCell(3), lambda: [LeakyCell(3, 0.5), L.LSTMCell(2)]],
                         ids=["known", "own"])
def test_zeros_where_steps_are_masked(probe, cell):
    case = (lambda: L.RNN(cell(), return_sequences=True, zero_output_for_mask=True), [(2, 5, 4)], {})
    compare(probe, case, [(2, 5)])


def scores():
    x, y = keras.Input((5, 4), name="x"), keras.Input((3, 4), name="y")
    heads, of_heads = L.MultiHeadAttention(2, 3)(x, y, return_attention_scores=True, use_causal_mask=True)
    products, of_products = L.Attention(use_scale=True)([x, y], return_attention_scores=True)
    sums = L.AdditiveAttention()([heads, y, y], use_causal_mask=True)
    return keras.Model([x, y], [L.Add()([heads, products, sums]), of_heads, of_products])


def marked():
    x = keras.Input((6,), name="x")
    words = L.Embedding(7, 4, mask_zero=True)(x)
    read = L.Attention()([L.LSTM(4, return_sequences=True)(words), words])
    return keras.Model(x, L.GlobalAveragePooling1D()(read))


def over_images():
    x = keras.Input((3, 4, 5))
    rows = L.MultiHeadAttention(2, 3, attention_axes=(2,))(x, x)
    return keras.Model(x, L.EinsumDense("abcd,cde->abe", (None, 6), bias_axes="e")(rows))


def cells():
    x, y = keras.Input((5, 4)), keras.Input((3, 4))
    out, lstm, gru = L.RNN([L.LSTMCell(3, dropout=0.5), L.GRUCell(2)], return_state=True)(x)
    decoded = L.RNN([L.LSTMCell(3, name="first"), L.GRUCell(2)], return_sequences=True)(
        y, initial_state=[lstm, gru])
    both = L.Bidirectional(L.RNN(L.SimpleRNNCell(2), return_sequences=True), name="sides")(decoded)
    return keras.Model([x, y], [out, both])


def distributed():
    sentence = keras.Input((5, 4))
    encoder = keras.Model(sentence, L.Bidirectional(L.GRU(3))(sentence), name="encoder")
    x = keras.Input((3, 5, 4))
    vectors = L.TimeDistributed(encoder)(x)
    return keras.Model(x, L.TimeDistributed(L.Dense(2))(L.TimeDistributed(L.BatchNormalization())(vectors)))


def distributed_sequential():
    return keras.Sequential([keras.Input((3, 6, 6, 2)), L.TimeDistributed(L.Conv2D(2, 3, activation="relu")),
                             L.TimeDistributed(L.Flatten()), L.RNN(L.LSTMCell(3)), L.Dense(2)])


@pytest.mark.parametrize("make", [scores, over_images, cells, distributed, distributed_sequential],
                         ids=lambda make: make.__name__)
def test_models_of_keras_and_back(probe, tmp_path, make):
    rng = np.random.default_rng(5)
    model = make()
    for variable in model.weights:
        variable.assign(rng.uniform(0.1, 1, variable.shape).astype(np.float32))
    inputs = inputs_of(model, rng)
    expected = model(nest.map_structure(tf.constant, inputs), training=False)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs),
                             "save": str(tmp_path / "cohort")})
    assert_outputs([from_json(output) for output in answer["outputs"]], expected)
    again = read(tmp_path / "cohort")
    found = again(nest.map_structure(tf.constant, inputs), training=False)
    assert_outputs([output.numpy() for output in nest.flatten(found)], expected, 1e-6)
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]
    theirs, ours = (tf.train.list_variables(str(tmp_path / side / "variables-1")) for side in ("keras", "cohort"))
    assert sorted(ours) == sorted(theirs)


def test_masks_of_models_follow_keras(probe, tmp_path):
    rng = np.random.default_rng(6)
    model = marked()
    inputs = rng.integers(0, 7, (4, 6)).astype(np.float32)
    inputs[:, 0] = 1
    expected = model(inputs)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs)})
    assert_outputs([from_json(output) for output in answer["outputs"]], expected)


def test_constraints_hold_as_in_keras(probe, tmp_path):
    rng = np.random.default_rng(7)
    x = keras.Input((4, 3))
    heads = L.MultiHeadAttention(2, 2, kernel_constraint=keras.constraints.MaxNorm(0.5, axis=[0, 1]))(x, x)
    states = L.GRU(3, recurrent_constraint="unit_norm", bias_constraint="non_neg", return_sequences=True)(heads)
    states = L.RNN(L.LSTMCell(3, kernel_constraint="non_neg"))(states)
    model = keras.Model(x, L.EinsumDense("ab,bc->ac", 2, kernel_constraint="unit_norm")(states))
    model.compile(keras.optimizers.SGD(0.5), "mse")
    inputs = rng.normal(size=(8, 4, 3)).astype(np.float32)
    labels = rng.normal(size=(8, 2)).astype(np.float32)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(inputs), "labels": as_json(labels),
                             "steps": 4, "save": str(tmp_path / "cohort")})
    losses = [model.train_on_batch(inputs, labels) for _ in range(4)]
    np.testing.assert_allclose(answer["losses"], losses, rtol=1e-4)
    for ours, theirs in zip(read(tmp_path / "cohort").weights, model.weights, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make,inputs", [
    (lambda: L.Attention(), [(2, 5, 4)]), (lambda: L.AdditiveAttention(), [(2, 5, 4), (2, 6, 4), (2, 6, 4), (2, 6, 4)]),
    (lambda: L.EinsumDense("ab,bc->ac", 6), [(3, 4, 5)]), (lambda: L.TimeDistributed(L.Dense(2)), [(3, 4)]),
    (lambda: L.RNN(L.LSTMCell(3)), [(2, 5, 4), (2, 3)])], ids=str)
def test_what_keras_refuses(probe, make, inputs):
    layer = make()
    arrays = make_inputs(np.random.default_rng(1), inputs)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        call(layer, nest.map_structure(tf.constant, arrays), {})
    given = [as_json(array) for array in arrays]
    answer = probe("sequence_layer", {"layer": type(layer).__name__, "config": plain(layer.get_config()),
                                      "inputs": given[0] if len(given) == 1 else given, "weights": []})
    assert answer["error"] == "INVALID_ARGUMENT", answer
