"""Our optimizers give Keras 2.15's numbers, step by step, and our schedules its rates."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

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
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.5, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "rho": 0.8, "epsilon": 1e-4}),
    ("Adafactor", {}),
    ("Adafactor", {"beta_2_decay": -0.5, "epsilon_1": 1e-6, "epsilon_2": 0.5,
                   "clip_threshold": 0.5, "relative_step": False}),
    ("Adafactor", {"weight_decay": 0.25, "global_clipnorm": 2.0, "use_ema": True,
                   "ema_overwrite_frequency": 3}),
    ("Adagrad", {}),
    ("Adagrad", {"initial_accumulator_value": 0.0, "epsilon": 1e-4}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.5, "epsilon": 1e-3}),
    ("Adamax", {}),
    ("Adamax", {"beta_1": 0.5, "beta_2": 0.75, "epsilon": 1e-3}),
    ("Nadam", {}),
    ("Nadam", {"beta_1": 0.5, "beta_2": 0.75, "epsilon": 1e-3}),
    ("Lion", {}),
    ("Lion", {"beta_1": 0.5, "beta_2": 0.75, "weight_decay": 0.25}),
    ("Ftrl", {}),
    ("Ftrl", {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.1,
              "l2_shrinkage_regularization_strength": 0.05, "beta": 0.5}),
    ("Ftrl", {"learning_rate_power": -0.75, "initial_accumulator_value": 0.5}),
    ("SGD", {"clipnorm": 0.5}),
    ("SGD", {"clipvalue": 0.25, "momentum": 0.5}),
    ("SGD", {"global_clipnorm": 0.5}),
    ("Adam", {"weight_decay": 0.25, "clipvalue": 0.5}),
    ("RMSprop", {"use_ema": True, "ema_momentum": 0.75, "ema_overwrite_frequency": 3,
                 "momentum": 0.5, "centered": True}),
    ("SGD", {"use_ema": True, "weight_decay": 0.1, "ema_overwrite_frequency": 5}),
]
# Keras keeps the learning rate in float32, and computes with some hyper-parameters in it, even
# where the variable is float64. Numbers that float32 holds show the formula itself.
IN_FLOAT32 = {"beta_1": 0.9, "beta_2": 0.999, "momentum": None}
# What Keras computes in float32 whatever the variable's dtype is.
COARSE = {"global_clipnorm", "weight_decay"}
COARSE_RULES = {"AdamW", "Nadam", "Ftrl"}


def rounded(options):
    return {key: float(np.float32(value)) if key in IN_FLOAT32 else value
            for key, value in options.items()}


def with_betas(name, options):
    if name not in ("Adam", "AdamW", "Adamax", "Nadam"):
        return options
    return {"beta_1": 0.9, "beta_2": 0.999, **options}


def keras_values(name, options, initial, steps):
    variables = [tf.Variable(value) for value in initial]
    optimizer = getattr(tf.keras.optimizers, name)(**options)
    values = []
    for gradients in steps:
        optimizer.apply_gradients(zip(gradients, variables))
        values.append([variable.numpy().copy() for variable in variables])
    return values


def compare(answer, expected, tolerance):
    assert len(answer["values"]) == len(expected)
    for step, (ours, theirs) in enumerate(zip(answer["values"], expected)):
        for mine, its in zip(ours, theirs):
            np.testing.assert_allclose(from_json(mine), its, rtol=tolerance, atol=tolerance,
                                       err_msg=f"step {step}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("learning_rate", [0.001, 0.125])
@pytest.mark.parametrize("name,options", CASES, ids=lambda value: str(value))
def test_follows_keras(probe, name, options, learning_rate, dtype):
    random = np.random.default_rng(20)
    initial = [random.normal(size=SIZE).astype(dtype), random.normal(size=(2, 3)).astype(dtype)]
    # Of very unlike sizes, and with zeros: epsilon and the sign of zero show only there.
    scale = 10.0 ** random.integers(-4, 3, size=SIZE)
    gradients = [[(random.normal(size=SIZE) * scale).astype(dtype),
                  random.normal(size=(2, 3)).astype(dtype)] for _ in range(STEPS)]
    for step, (gradient, _) in enumerate(gradients):
        gradient[0] = 0
        if 5 <= step < 9:
            gradient[1] = 0

    options = rounded(with_betas(name, {"learning_rate": float(np.float32(learning_rate)),
                                        **options}))
    expected = keras_values(name, options, initial,
                            [[tf.constant(g) for g in step] for step in gradients])
    answer = probe("optimizer", {
        "optimizer": name, "options": options, "initial": [as_json(v) for v in initial],
        "gradients": [[as_json(g) for g in step] for step in gradients]})
    # Adamax and Nadam in float64: Keras raises 0.96 and the betas to powers in another order.
    tolerance = 1e-6 if (
        dtype == "float32" or COARSE & set(options) or name in COARSE_RULES) else 1e-12
    if dtype == "float32" and name in ("Adafactor", "Ftrl", "Nadam", "Adadelta"):
        tolerance = 1e-5  # differences of nearly equal numbers, in another order
    compare(answer, expected, tolerance)


@pytest.mark.parametrize("name", ["AdamW", "SGD", "Adafactor"])
def test_variables_are_excluded_from_weight_decay(probe, name):
    random = np.random.default_rng(23)
    initial = [random.normal(size=(2, 3)).astype("float32") for _ in range(3)]
    gradients = [[random.normal(size=(2, 3)).astype("float32") for _ in initial]
                 for _ in range(STEPS)]
    options = {"learning_rate": 0.125, "weight_decay": 0.25}
    variables = [tf.Variable(value, name=f"v{i}") for i, value in enumerate(initial)]
    optimizer = getattr(tf.keras.optimizers, name)(**options)
    optimizer.exclude_from_weight_decay(var_list=[variables[0]], var_names=["2"])
    expected = []
    for step in gradients:
        optimizer.apply_gradients(zip([tf.constant(g) for g in step], variables))
        expected.append([variable.numpy().copy() for variable in variables])
    answer = probe("optimizer", {
        "optimizer": name, "options": options, "initial": [as_json(v) for v in initial],
        "excluded": [0, 2], "gradients": [[as_json(g) for g in step] for step in gradients]})
    compare(answer, expected, 1e-5)


@pytest.mark.parametrize("name,options", CASES, ids=lambda value: str(value))
def test_sparse_gradients_follow_keras(probe, name, options):
    """Duplicate ids, and rows that never have a gradient. Keras clips a sparse gradient by the norm
    of its rows before it adds up duplicates: there ids differ."""
    random = np.random.default_rng(21)
    initial = random.normal(size=(7, 3)).astype("float32")
    steps = []
    for _ in range(STEPS):
        ids = (random.permutation(6)[:4] if {"clipnorm", "clipvalue", "global_clipnorm"} & set(options)
               else random.integers(0, 6, 4))
        steps.append((ids, random.normal(size=(4, 3)).astype("float32")))
    options = rounded(with_betas(name, {"learning_rate": 0.125, **options}))
    slices = [[tf.IndexedSlices(tf.constant(rows), tf.constant(ids), tf.constant([7, 3], tf.int64))]
              for ids, rows in steps]
    expected = keras_values(name, options, [initial], slices)
    answer = probe("optimizer", {
        "optimizer": name, "options": options, "initial": [as_json(initial)],
        "gradients": [[{"ids": as_json(ids), "rows": as_json(rows)}] for ids, rows in steps]})
    compare(answer, expected, 2e-5)


SCHEDULES = [
    ("ExponentialDecay", {"decay_steps": 7, "decay_rate": 0.75}),
    ("ExponentialDecay", {"decay_steps": 7, "decay_rate": 0.75, "staircase": True}),
    ("InverseTimeDecay", {"decay_steps": 7, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"decay_steps": 7, "decay_rate": 0.5, "staircase": True}),
    ("PolynomialDecay", {"decay_steps": 20, "end_learning_rate": 0.01}),
    ("PolynomialDecay", {"decay_steps": 20, "end_learning_rate": 0.01, "power": 0.5}),
    ("PolynomialDecay", {"decay_steps": 9, "power": 2.0, "cycle": True}),
    ("CosineDecay", {"decay_steps": 20}),
    ("CosineDecay", {"decay_steps": 20, "alpha": 0.25, "warmup_target": 0.75, "warmup_steps": 6}),
    ("CosineDecayRestarts", {"first_decay_steps": 6}),
    ("CosineDecayRestarts", {"first_decay_steps": 7, "t_mul": 1.0, "m_mul": 0.5, "alpha": 0.125}),
    ("CosineDecayRestarts", {"first_decay_steps": 6, "t_mul": 1.5, "m_mul": 0.5}),
]


@pytest.mark.parametrize("name,options", SCHEDULES, ids=lambda value: str(value))
def test_schedules_follow_keras(probe, name, options):
    options = {"initial_learning_rate": 0.5, **options}
    schedule = getattr(tf.keras.optimizers.schedules, name)(**options)
    iterations = list(range(50))
    rates = probe("learning_rates", {"learning_rate": {"schedule": name, **options},
                                     "iterations": iterations})["rates"]
    np.testing.assert_allclose(rates, [schedule(i).numpy() for i in iterations], rtol=2e-5,
                               atol=1e-6)


def test_piecewise_constant_follows_keras(probe):
    boundaries, values = [3, 10], [1.0, 0.5, 0.25]
    schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay(boundaries, values)
    iterations = list(range(15))
    rates = probe("learning_rates", {
        "learning_rate": {"schedule": "PiecewiseConstantDecay", "boundaries": boundaries,
                          "values": values}, "iterations": iterations})["rates"]
    assert rates == [schedule(i).numpy() for i in iterations]


def test_an_optimizer_follows_its_schedule(probe):
    random = np.random.default_rng(22)
    initial = random.normal(size=5).astype("float32")
    steps = random.normal(size=(STEPS, 5)).astype("float32")
    schedule = {"initial_learning_rate": 0.125, "decay_steps": 6, "warmup_target": 0.5,
                "warmup_steps": 4}
    expected = keras_values(
        "AdamW", {"learning_rate": tf.keras.optimizers.schedules.CosineDecay(**schedule)},
        [initial], [[tf.constant(g)] for g in steps])
    answer = probe("optimizer", {
        "optimizer": "AdamW", "initial": [as_json(initial)],
        "options": {"learning_rate": {"schedule": "CosineDecay", **schedule}},
        "gradients": [[as_json(g)] for g in steps]})
    compare(answer, expected, 1e-5)
