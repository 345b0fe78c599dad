"""The models of the step benchmark in Keras: guide 004's, those of bench/models.cc, and those of
examples/models, in the sizes of bench/example_training.cc."""

import pathlib
import sys

import numpy as np
import tensorflow as tf

from samples import CLASSES, COLUMNS, LABELS_SHAPES, PADDED_LABELS, SAMPLES, VOCABULARY

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "models"))
import in_keras  # noqa: E402

layers = tf.keras.layers


def cnn():
    def regularizer():
        return tf.keras.regularizers.L2(1e-5)

    return tf.keras.Sequential([
        layers.Conv2D(32, 3, activation="relu", kernel_regularizer=regularizer()),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu", kernel_regularizer=regularizer()),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(64, activation="relu", kernel_regularizer=regularizer()),
        layers.Dense(CLASSES, kernel_regularizer=regularizer())])


def mlp():
    return tf.keras.Sequential([layers.Dense(128, activation="relu"), layers.Dense(CLASSES)])


def embedding():
    return tf.keras.Sequential([layers.Embedding(VOCABULARY, 64), layers.GlobalAveragePooling1D(),
                                layers.Dense(CLASSES)])


def lstm(unroll=False):
    return tf.keras.Sequential([layers.LSTM(128, unroll=unroll), layers.Dense(CLASSES)])


def convolution(inputs, outputs, size, stride):
    inputs = layers.Conv2D(outputs, size, stride, padding="same", use_bias=False)(inputs)
    return layers.BatchNormalization()(inputs)


def residual_block(inputs, outputs, stride):
    inside = layers.ReLU()(convolution(inputs, outputs, 3, stride))
    inside = convolution(inside, outputs, 3, 1)
    if stride != 1 or inputs.shape[-1] != outputs:
        inputs = convolution(inputs, outputs, 1, stride)
    return layers.ReLU()(inside + inputs)


def resnet():
    images = tf.keras.Input([32, 32, 3])
    inside = layers.ReLU()(convolution(images, 64, 3, 1))
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            inside = residual_block(inside, outputs, stride)
    pooled = layers.GlobalAveragePooling2D()(inside)
    return tf.keras.Model(images, layers.Dense(CLASSES)(pooled))


EXAMPLES = {
    "densenet": {"size": 32, "blocks": (6, 6, 6), "classes": CLASSES},
    "bert": {"words": 8188, "length": 128, "features": 128, "heads": 2, "inner": 512, "masked": 20,
             "dropout": 0.1},
    "ncf": {"users": 6040, "items": 3706, "factors": 16, "tower": (64, 32, 16)},
    "nmt": {"words": 4000, "longest": 20, "features": 128, "units": 128, "dropout": 0.1},
    "transformer": {"words": 4000, "longest": 20, "features": 128, "layers": 2, "inner": 512,
                    "dropout": 0.1},
}


def inputs_of(name, array):
    """What the model takes: the array, or its columns by name."""
    if name not in COLUMNS:
        return array
    ends = np.cumsum([column.count for column in COLUMNS[name]])[:-1]
    parts = np.split(array, ends, axis=1)
    return {column.name: part[:, 0] if name == "ncf" else part
            for column, part in zip(COLUMNS[name], parts)}


def labels_of(name, array):
    return array.reshape(-1, *LABELS_SHAPES.get(name, ()))


def loss_of(name):
    """loss(labels, logits) of each sample."""
    losses = tf.keras.losses
    if name == "ncf":
        return losses.BinaryCrossentropy(from_logits=True, reduction=losses.Reduction.NONE)
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, reduction=losses.Reduction.NONE)
    if name not in PADDED_LABELS:
        return loss
    return lambda labels, logits: tf.reduce_mean(
        loss(labels, logits) * tf.cast(labels != 0, tf.float32), axis=1)


def make(name, unroll=False):
    if name in EXAMPLES:
        return getattr(in_keras, name)(**EXAMPLES[name])
    model = lstm(unroll) if name == "lstm" else globals()[name]()
    _, shape, _ = SAMPLES[name]
    model.build((None, *shape))
    return model


def make_optimizer(name, legacy):
    optimizers = tf.keras.optimizers.legacy if legacy else tf.keras.optimizers
    if name == "embedding":
        return optimizers.SGD(0.1)
    if name == "resnet":
        return optimizers.SGD(0.01, momentum=0.9)
    return optimizers.Adam(0.001)
