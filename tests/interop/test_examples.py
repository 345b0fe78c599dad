"""The models of examples/models: from equal weights on equal batches they have Keras's losses, step by step."""

import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from conftest import from_json

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "models"))
import in_keras  # noqa: E402

STEPS = 20
keras = tf.keras


def array_of(json):
    if json is None:
        return None
    return from_json(json) if "values" in json else {name: from_json(one) for name, one in json.items()}


def compiled(name, weights, learning_rate):
    model = getattr(in_keras, name)()
    model.set_weights([from_json(weight) for weight in weights])
    # As numbers of numpy: Keras rounds Python's to float32, whatever the dtype of the weights.
    optimizer = (keras.optimizers.SGD(learning_rate, momentum=np.float64(0.9), nesterov=True) if name == "densenet"
                 else keras.optimizers.Adam(learning_rate, np.float64(0.9), np.float64(0.999)))
    loss = keras.losses.BinaryCrossentropy if name == "ncf" else keras.losses.SparseCategoricalCrossentropy
    model.compile(optimizer, loss(from_logits=True))
    return model


@pytest.fixture(params=["float32", "float64"])
def floatx(request):
    keras.backend.set_floatx(request.param)
    yield request.param
    keras.backend.set_floatx("float32")


# Batch normalization of few images and a large learning rate multiply what rounding has made different by
# some ten a step: DenseNet's losses of float32 are compared at the beginning.
@pytest.mark.parametrize("name", ["densenet", "bert", "ncf", "nmt", "transformer"])
def test_models_follow_keras(probe, name, floatx):
    answer = probe("example", {"model": name, "batches": 4, "rows": 16, "steps": STEPS, "floatx": floatx})
    model = compiled(name, answer["weights"], answer["learning_rate"])
    batches = [[array_of(batch[part]) for part in ("inputs", "labels", "weights")]
               for batch in answer["batches"]]
    losses = [model.train_on_batch(*batches[step % len(batches)]) for step in range(STEPS)]
    assert losses[-1] < losses[0]
    compared = 3 if (name, floatx) == ("densenet", "float32") else STEPS
    # TensorFlow's gelu divides by a square root of 2 that is rounded to float32.
    tolerance = 1e-5 if floatx == "float32" else 1e-8 if name == "bert" else 1e-12
    np.testing.assert_allclose(answer["losses"][:compared], losses[:compared], rtol=tolerance)
