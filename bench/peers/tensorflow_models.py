"""The models of the step benchmark in Keras: guide 004's, and those of bench/models.cc."""

import tensorflow as tf

from samples import CLASSES, SAMPLES, VOCABULARY

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


def make(name, unroll=False):
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
