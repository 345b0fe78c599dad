"""Layers give TensorFlow's outputs and gradients from equal weights."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

layers = tf.keras.layers
SEQUENCE = [(3, 7, 4)]
IMAGE = [(2, 5, 6, 3)]
PAIR = [(3, 4), (3, 4)]

ACTIVATIONS = ["elu", "exponential", "gelu", "hard_sigmoid", "linear", "mish", "relu", "selu", "sigmoid",
               "softmax", "softplus", "softsign", "swish", "tanh"]

CASES = [
    ("BatchNormalization", {}, [(6, 4)]),
    ("BatchNormalization", {"momentum": 0.5, "epsilon": 0.01}, [(4, 5, 3)]),
    ("BatchNormalization", {}, IMAGE),
    ("BatchNormalization", {"axis": 1, "momentum": 0.75}, IMAGE),
    ("BatchNormalization", {"center": False}, [(6, 4)]),
    ("BatchNormalization", {"scale": False, "synchronized": True}, IMAGE),
    ("LayerNormalization", {}, SEQUENCE),
    ("LayerNormalization", {"axis": [1, 2], "epsilon": 1e-5}, SEQUENCE),
    ("LayerNormalization", {"axis": [1]}, SEQUENCE),
    ("Conv1D", {"filters": 5, "kernel_size": 3}, SEQUENCE),
    ("Conv1D", {"filters": 2, "kernel_size": 4, "padding": "same", "strides": 2}, SEQUENCE),
    ("Conv1D", {"filters": 2, "kernel_size": 3, "padding": "causal", "dilation_rate": 2,
                "activation": "tanh"}, SEQUENCE),
    ("MaxPooling1D", {}, SEQUENCE),
    ("MaxPooling1D", {"pool_size": 3, "strides": 1, "padding": "same"}, SEQUENCE),
    ("AveragePooling1D", {"pool_size": 3, "strides": 2}, SEQUENCE),
    ("AveragePooling1D", {"pool_size": 2, "padding": "same"}, SEQUENCE),
    ("AveragePooling2D", {}, IMAGE),
    ("AveragePooling2D", {"pool_size": 3, "strides": 2, "padding": "same"}, IMAGE),
    ("GlobalMaxPooling1D", {}, SEQUENCE),
    ("GlobalMaxPooling1D", {"keepdims": True}, SEQUENCE),
    ("GlobalAveragePooling1D", {}, SEQUENCE),
    ("GlobalMaxPooling2D", {}, IMAGE),
    ("GlobalAveragePooling2D", {}, IMAGE),
    ("Add", {}, [*PAIR, (3, 4)]),
    ("Subtract", {}, PAIR),
    ("Multiply", {}, [*PAIR, (3, 4)]),
    ("Average", {}, [*PAIR, (3, 4)]),
    ("Maximum", {}, PAIR),
    ("Minimum", {}, PAIR),
    ("Concatenate", {"axis": 1}, [(3, 4), (3, 2)]),
    ("Rescaling", {"scale": 0.5, "offset": 3.0}, SEQUENCE),
    ("ReLU", {}, SEQUENCE),
    ("ReLU", {"max_value": 1.0, "negative_slope": 0.25}, SEQUENCE),
    ("ReLU", {"threshold": 0.5, "negative_slope": 0.1}, SEQUENCE),
    ("LeakyReLU", {}, SEQUENCE),
    ("LeakyReLU", {"alpha": 0.05}, SEQUENCE),
    ("ELU", {"alpha": 0.5}, SEQUENCE),
    *[("Activation", {"activation": name}, SEQUENCE) for name in ACTIVATIONS],
    *[("Dense", {"units": 5, "activation": name}, [(6, 4)]) for name in ACTIVATIONS],
    ("Softmax", {}, SEQUENCE),
    ("Softmax", {"axis": [1]}, SEQUENCE),
    ("Softmax", {"axis": [1, 2]}, SEQUENCE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [3, 2]}, IMAGE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [3, 3], "strides": 2}, IMAGE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [2, 3], "strides": 2, "padding": "same",
                         "activation": "relu"}, IMAGE),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": [1, 2], "strides": 3, "padding": "same",
                         "use_bias": False}, IMAGE),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": [2, 1], "strides": 3}, IMAGE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [3, 3], "strides": 2, "padding": "same",
                         "output_padding": [1, 0]}, IMAGE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [2, 4], "strides": 3, "padding": "same",
                         "output_padding": [2, 1]}, IMAGE),
    ("Conv2DTranspose", {"filters": 4, "kernel_size": [2, 3], "strides": 3,
                         "output_padding": [0, 2]}, IMAGE),
    ("Dot", {"axes": [1, 1]}, PAIR),
    ("Dot", {"axes": [-1, -1], "normalize": True}, PAIR),
    ("Dot", {"axes": [2, 1]}, [(2, 3, 4), (2, 4, 5)]),
    ("Dot", {"axes": [1, 3], "normalize": True}, [(2, 3, 4), (2, 4, 5, 3)]),
    ("SimpleRNN", {"units": 5}, SEQUENCE),
    ("SimpleRNN", {"units": 3, "return_sequences": True, "go_backwards": True}, SEQUENCE),
    ("SimpleRNN", {"units": 3, "activation": "relu", "use_bias": False}, SEQUENCE),
    ("Bidirectional", {"layer": "LSTM", "units": 3}, SEQUENCE),
    ("Bidirectional", {"layer": "GRU", "units": 3, "return_sequences": True,
                       "merge_mode": "sum"}, SEQUENCE),
    ("Bidirectional", {"layer": "SimpleRNN", "units": 3, "merge_mode": "mul"}, SEQUENCE),
    ("Bidirectional", {"layer": "GRU", "units": 3, "merge_mode": "ave"}, SEQUENCE),
    ("Bidirectional", {"layer": "LSTM", "units": 3, "return_sequences": True, "backward": {
        "layer": "GRU", "units": 2, "return_sequences": True, "go_backwards": True}}, SEQUENCE),
    ("LSTM", {"units": 5}, SEQUENCE),
    ("LSTM", {"units": 3, "return_sequences": True, "go_backwards": True}, SEQUENCE),
    ("LSTM", {"units": 3, "use_bias": False}, SEQUENCE),
    ("LSTM", {"units": 3, "activation": "relu", "return_sequences": True}, SEQUENCE),
    ("GRU", {"units": 5}, SEQUENCE),
    ("GRU", {"units": 3, "return_sequences": True, "go_backwards": True}, SEQUENCE),
    ("GRU", {"units": 3, "reset_after": False}, SEQUENCE),
    ("GRU", {"units": 3, "use_bias": False}, SEQUENCE),
    ("GRU", {"units": 3, "activation": "relu", "return_sequences": True}, SEQUENCE),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3}, [(2, 5, 4), (2, 6, 3)]),
    ("MultiHeadAttention", {"num_heads": 3, "key_dim": 2, "value_dim": 4, "output_shape": 7,
                            "use_bias": False}, [(2, 5, 4), (2, 6, 3), (2, 6, 2)]),
    ("MultiHeadAttention", {"num_heads": 2, "key_dim": 3, "use_causal_mask": True},
     [(2, 5, 4), (2, 5, 4)]),
]


def call(layer, name, inputs, training, mask=None):
    if name == "MultiHeadAttention":
        causal = layer.interop_causal
        query, value, *key = inputs
        return layer(query, value, *key, training=training, use_causal_mask=causal)
    whole = inputs[0] if len(inputs) == 1 else inputs
    given = {} if mask is None else {"mask": tf.constant(mask)}
    if name == "BatchNormalization":
        given["training"] = training
    return layer(whole, **given)


# Of sequences of which some steps are masked.
MASKED_CASES = [
    ("BatchNormalization", {}),
    ("BatchNormalization", {"momentum": 0.5, "center": False}),
    ("BatchNormalization", {"synchronized": True, "momentum": 0.5}),
    ("GlobalAveragePooling1D", {}),
    ("SimpleRNN", {"units": 3}),
    ("LSTM", {"units": 3}),
    ("LSTM", {"units": 3, "return_sequences": True, "go_backwards": True}),
    ("LSTM", {"units": 3, "activation": "relu", "return_sequences": True}),
    ("GRU", {"units": 3, "return_sequences": True}),
    ("GRU", {"units": 3, "reset_after": False}),
    ("Bidirectional", {"layer": "GRU", "units": 3, "return_sequences": True}),
    ("Bidirectional", {"layer": "LSTM", "units": 3, "merge_mode": "ave"}),
]


def make(name, options):
    options = dict(options)
    causal = options.pop("use_causal_mask", False)
    if name == "Bidirectional":
        mode = options.pop("merge_mode", "concat")
        backward = options.pop("backward", None)
        layer = layers.Bidirectional(
            getattr(layers, options.pop("layer"))(**options), mode,
            backward_layer=backward and make(backward["layer"], {
                key: value for key, value in backward.items() if key != "layer"}))
    else:
        if isinstance(options.get("axis"), list) and name == "Softmax" and len(options["axis"]) == 1:
            options["axis"] = options["axis"][0]
        layer = getattr(layers, name)(**options)
    layer.interop_causal = causal
    return layer


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name,options,shapes", CASES, ids=str)
def test_layer_follows_keras(probe, name, options, shapes, training):
    random = np.random.default_rng(list(repr((name, sorted(options), shapes)).encode()))
    inputs = [tf.constant(random.normal(size=shape), tf.float32) for shape in shapes]
    compare(probe, random, name, options, inputs, training, lambda inputs: inputs)


# Where functions have kinks, and where inputs are equal: the slope there is a choice.
KINKS = [
    *[("Activation", {"activation": name}) for name in ACTIVATIONS if name != "softmax"],
    ("ReLU", {}), ("ReLU", {"max_value": 1.0}), ("ReLU", {"negative_slope": 0.25}),
    ("ReLU", {"max_value": 1.0, "negative_slope": 0.25}), ("LeakyReLU", {}), ("ELU", {"alpha": 0.5}),
    ("Maximum", {}), ("Minimum", {}), ("GlobalMaxPooling1D", {}), ("MaxPooling1D", {}),
]


@pytest.mark.parametrize("name,options", KINKS, ids=str)
def test_slopes_at_kinks(probe, name, options):
    x = np.float32([[[0], [1], [1], [-2.5], [2.5], [0]]])
    count = 2 if name in ("Maximum", "Minimum") else 1
    inputs = [tf.constant(x) for _ in range(count)]
    compare(probe, np.random.default_rng(3), name, options, inputs, True, lambda inputs: inputs)


PLANNED = [case for case in CASES
           if case[0] in ("LSTM", "GRU") and "activation" not in case[1]
           and case[1].get("reset_after", True)]


@pytest.mark.parametrize("name,options,shapes", PLANNED, ids=str)
def test_plan_of_a_recurrent_layer_follows_keras(probe, name, options, shapes):
    random = np.random.default_rng(9)
    for shape in [*shapes, (19, 6, 5)]:
        inputs = [tf.constant(random.normal(size=shape), tf.float32)]
        answer = compare(probe, random, name, options, inputs, True, lambda inputs: inputs,
                         in_model=True)
        assert "one plan" in answer["explain"] and "ran 1 times" in answer["explain"]


@pytest.mark.parametrize("name,options", MASKED_CASES, ids=str)
def test_masked_steps_follow_keras(probe, name, options):
    random = np.random.default_rng(7)
    values = random.normal(size=(4, 5, 3))
    values[0, 2:] = 1
    values[1, :2] = 1
    values[2, [1, 3]] = 1
    masking = layers.Masking(1.0)
    compare(probe, random, name, options, [tf.constant(values, tf.float32)], True,
            lambda inputs: [masking(inputs[0])], masked=True)


@pytest.mark.parametrize("name,options", MASKED_CASES, ids=str)
def test_masks_given_in_a_call_follow_keras(probe, name, options):
    random = np.random.default_rng(9)
    inputs = [tf.constant(random.normal(size=(4, 5, 3)), tf.float32)]
    mask = random.random(size=(4, 5)) < 0.6
    mask[:, 0] = True
    compare(probe, random, name, options, inputs, True, lambda inputs: inputs, mask=mask)


@pytest.mark.parametrize("name,options", [
    ("SimpleRNN", {"units": 3}), ("LSTM", {"units": 3}),
    ("GRU", {"units": 3, "return_sequences": True, "go_backwards": True}),
    ("GRU", {"units": 3, "reset_after": False}), ("Bidirectional", {"layer": "LSTM", "units": 3}),
], ids=str)
def test_stateful_layers_follow_keras(probe, name, options):
    random = np.random.default_rng(10)
    batches = [tf.constant(random.normal(size=(4, 5, 3)), tf.float32) for _ in range(3)]
    compare(probe, random, name, {**options, "stateful": True}, batches[2:], True,
            lambda inputs: inputs, earlier=batches[:2])


def test_dropout_of_recurrent_layers_is_that_of_training(probe):
    random = np.random.default_rng(8)
    inputs = [tf.constant(random.normal(size=(3, 5, 4)), tf.float32)]
    for name in ("SimpleRNN", "LSTM", "GRU"):
        options = {"units": 3, "dropout": 0.5, "recurrent_dropout": 0.25}
        compare(probe, random, name, options, inputs, False, lambda inputs: inputs)


def compare(probe, random, name, options, inputs, training, before, masked=False, mask=None,
            earlier=(), in_model=False):
    """earlier: batches that go before, of which a stateful layer keeps the state."""
    layer = make(name, options)
    call(layer, name, before(inputs), False)
    weights = [(random.random(size=w.shape) * 0.6 + 0.2).astype("float32")
               for w in layer.get_weights()]
    layer.set_weights(weights)
    if earlier:
        layer.reset_states()
    for batch in earlier:
        call(layer, name, [batch], False)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = call(layer, name, before(inputs), training, mask)
        flat = tf.reshape(output, [-1])
        loss = tf.reduce_sum(flat * tf.cos(tf.range(tf.size(flat), dtype=tf.float32)))
    gradients = tape.gradient(loss, inputs + layer.trainable_variables,
                              unconnected_gradients="zero")

    more = {} if mask is None else {"mask": as_json(mask.astype("float32"))}
    answer = probe("layer", {
        **more, "earlier": [as_json(batch.numpy()) for batch in earlier],
        "layer": name, "options": options, "training": training, "masked": masked,
        "in_model": in_model,
        "inputs": [as_json(x.numpy()) for x in inputs], "weights": [as_json(w) for w in weights]})
    np.testing.assert_allclose(from_json(answer["output"]), output.numpy(), rtol=1e-5, atol=1e-5)
    assert len(answer["gradients"]) == len(gradients)
    for ours, theirs in zip(answer["gradients"], gradients):
        np.testing.assert_allclose(from_json(ours), theirs.numpy(), rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(answer["weights"], layer.get_weights()):
        np.testing.assert_allclose(from_json(ours), theirs, rtol=1e-5, atol=1e-5)
    return answer


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("axis", [[-1], [1], [1, 2], []], ids=str)
def test_normalization_adapts_as_keras(probe, axis, invert):
    data = np.random.default_rng(len(axis)).normal(3, 5, size=(11, 4, 3)).astype("float32")
    layer = layers.Normalization(axis=axis or None, invert=invert)
    layer.adapt(tf.data.Dataset.from_tensor_slices(data).batch(4))
    answer = probe("normalization", {"axis": axis, "invert": invert, "batch_size": 4,
                                     "data": as_json(data)})
    for ours, theirs in zip(answer["weights"], layer.get_weights()):
        np.testing.assert_allclose(from_json(ours), theirs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(from_json(answer["output"]), layer(data).numpy(), rtol=1e-5,
                               atol=1e-5)
