"""Guide 004's model from equal weights on equal batches gives TensorFlow's losses, step by step."""

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json

STEPS = 20
GLOBAL_BATCH = 24


def guide_model():
    regularizer = tf.keras.regularizers.L2(1e-5)
    layers = tf.keras.layers
    return tf.keras.Sequential([
        layers.Conv2D(32, 3, activation="relu", kernel_regularizer=regularizer),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu", kernel_regularizer=regularizer),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(64, activation="relu", kernel_regularizer=regularizer),
        layers.Dense(10, kernel_regularizer=regularizer),
    ])


@pytest.fixture(scope="module")
def reference():
    """(initial weights, batches, losses), as TensorFlow trains without a strategy."""
    tf.keras.utils.set_random_seed(4)
    random = np.random.default_rng(4)
    # Classes that can be told apart, so that the loss falls and a wrong gradient shows.
    templates = random.random((10, 28, 28, 1), dtype=np.float32)
    batches = []
    # The last batch is short: the constant denominator must hold for it too.
    for size in (GLOBAL_BATCH, GLOBAL_BATCH, 7):
        labels = random.integers(0, 10, size)
        noise = random.random((size, 28, 28, 1), dtype=np.float32)
        batches.append(((0.5 * templates[labels] + 0.5 * noise).astype(np.float32), labels))

    model = guide_model()
    model.build((None, 28, 28, 1))
    weights = model.get_weights()
    optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, reduction=tf.keras.losses.Reduction.NONE)

    losses = []
    for step in range(STEPS):
        images, labels = batches[step % len(batches)]
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            loss = tf.nn.compute_average_loss(
                loss_object(labels, predictions), global_batch_size=GLOBAL_BATCH)
            loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        losses.append(float(loss))
    assert losses[-2] < losses[0]
    return weights, batches, losses


@pytest.mark.parametrize("replicas", [1, 2, 5])
def test_guide_004_follows_tensorflow(probe, reference, replicas):
    weights, batches, losses = reference
    answer = probe("training", {
        "replicas": replicas,
        "global_batch": GLOBAL_BATCH,
        "steps": STEPS,
        "learning_rate": 0.001,
        "weights": [as_json(weight) for weight in weights],
        "batches": [{"images": as_json(images), "labels": as_json(labels)}
                    for images, labels in batches],
    })
    probe.close("training")  # logical devices are fixed for the life of a process
    np.testing.assert_allclose(answer["losses"], losses, rtol=1e-4)
