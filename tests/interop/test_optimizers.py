"""Our update rules give Keras 2.15's numbers, step by step."""

import numpy as np
import pytest
import tensorflow as tf

STEPS = 20
SIZE = 33

CASES = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("SGD", {"momentum": 0.5, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True}),
    ("Adam", {"beta_1": 0.7, "beta_2": 0.9, "epsilon": 1e-3}),
    ("Adam", {"beta_1": 0.0, "beta_2": 0.5, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "rho": 0.8, "epsilon": 1e-4}),
]


def rounded(number):
    """Keras keeps the learning rate in float32, and computes with Adam's betas and SGD's momentum
    in it, even where the variable is float64. Numbers that float32 holds show the formula itself."""
    return float(np.float32(number))


def keras_values(name, options, learning_rate, initial, gradients):
    variable = tf.Variable(initial)
    optimizer = getattr(tf.keras.optimizers, name)(learning_rate=learning_rate, **options)
    values = []
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), variable)])
        values.append(variable.numpy().copy())
    return values


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("learning_rate", [0.001, 0.125])
@pytest.mark.parametrize("name,options", CASES, ids=lambda value: str(value))
def test_follows_keras(probe, name, options, learning_rate, dtype):
    random = np.random.default_rng(20)
    initial = random.normal(size=SIZE).astype(dtype)
    # Of very unlike sizes, and with zeros: epsilon and the sign of zero show only there.
    scale = 10.0 ** random.integers(-4, 3, size=SIZE)
    gradients = (random.normal(size=(STEPS, SIZE)) * scale).astype(dtype)
    gradients[:, 0] = 0
    gradients[5:9, 1] = 0

    learning_rate = rounded(learning_rate)
    if name == "Adam":
        options = {"beta_1": 0.9, "beta_2": 0.999, **options}
    options = {key: rounded(value) if key in ("beta_1", "beta_2", "momentum") else value
               for key, value in options.items()}

    expected = keras_values(name, options, learning_rate, initial, gradients)
    answer = probe("optimizer", {
        "optimizer": name,
        "options": options,
        "learning_rate": learning_rate,
        "dtype": dtype,
        "initial": initial.tolist(),
        "gradients": gradients.tolist(),
    })
    tolerance = 1e-6 if dtype == "float32" else 1e-12
    assert len(answer["values"]) == STEPS
    for step, (ours, theirs) in enumerate(zip(answer["values"], expected)):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance,
                                   err_msg=f"step {step}")
