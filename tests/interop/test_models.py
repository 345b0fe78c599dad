"""Whole models: Keras's JSON and checkpoints in, ours out, and back into Keras."""

import json

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

keras = tf.keras
L = keras.layers


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def images():
    return keras.Sequential([
        keras.Input((8, 8, 3), name="image"),
        L.Rescaling(1 / 2, offset=-0.5),
        L.Conv2D(4, 3, strides=2, padding="same", activation="relu",
                 kernel_regularizer=keras.regularizers.L2(1e-3)),
        L.BatchNormalization(momentum=0.5),
        L.MaxPooling2D(),
        L.Dropout(0.25),
        L.Flatten(),
        L.Dense(5, activation="softmax", kernel_initializer=keras.initializers.HeNormal(seed=3)),
    ])


def built_by_a_call():
    model = keras.Sequential([L.Embedding(7, 3), L.Conv1D(4, 2), L.AveragePooling1D(),
                              L.GlobalMaxPooling1D(), L.LayerNormalization(), L.Dense(2)])
    model(np.zeros((2, 6), np.int64))
    return model


def shared():
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    dense = L.Dense(3, name="shared", activation="tanh")
    merged = L.Concatenate()([dense(a), dense(b)])
    inner = keras.Sequential([keras.Input((6,)), L.Dense(4), L.Activation("relu")], name="inner")
    return keras.Model([a, b], [L.Dense(2)(inner(merged)), L.Add()([dense(a), dense(b)])])


def recurrent():
    x, y = keras.Input((5, 4)), keras.Input((3, 4))
    _, h, c = L.LSTM(3, return_state=True)(x)
    decoded = L.LSTM(3, return_sequences=True)(y, initial_state=[h, c])
    return keras.Model([x, y], L.GRU(2)(L.Dropout(0.5)(decoded, training=False)))


def attention():
    x, y = keras.Input((5, 4)), keras.Input((3, 4))
    causal = L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    crossed = L.MultiHeadAttention(2, 3, value_dim=5, output_shape=4)(causal, y, y)
    return keras.Model([x, y], L.GlobalAveragePooling1D()(crossed))


def dicts():
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    return keras.Model({"x": x, "y": y}, {"sum": L.Add()([L.Dense(4)(x), y]), "y": L.Dense(1)(y)})


def nested():
    x = keras.Input((4,))
    block = keras.Model(x, L.Dense(4, name="inside")(x), name="block")
    y = keras.Input((4,))
    return keras.Model(y, block(block(L.Normalization(mean=[1., 2, 3, 4], variance=[1., 1, 4, 4])(y))))


def words():
    x = keras.Input((3,), dtype="string")
    return keras.Model(x, L.Embedding(4, 2)(L.StringLookup(vocabulary=["a", "b", "c"])(x)))


def categories():
    city, day = keras.Input((1,), name="city", dtype="string"), keras.Input((1,), name="day", dtype="int64")
    visits, hours = keras.Input((3,), name="visits", dtype="int64"), keras.Input((3,), name="hours")
    ages = L.Discretization(num_bins=4, epsilon=0.1)
    ages.adapt(np.random.default_rng(3).normal(size=(100, 3)))
    counts = L.CategoryEncoding(7, output_mode="count")(visits, count_weights=hours)
    features = L.Concatenate()([
        L.Hashing(4, salt=[1, 2], mask_value="b", output_mode="one_hot")(city),
        L.HashedCrossing(5, output_mode="one_hot")([city, day]), counts,
        L.Discretization([-0.5, 0.5], output_mode="count")(hours)])
    return keras.Model([city, day, visits, hours], [L.Dense(2)(features), L.Embedding(5, 2)(ages(hours))])


def larger_images():
    return keras.Sequential([
        keras.Input((4, 4, 3)), L.Conv2DTranspose(4, 3, strides=2, padding="same"), L.LeakyReLU(0.1),
        L.Conv2DTranspose(2, 2, strides=2, output_padding=1), L.ReLU(6.0, negative_slope=0.5), L.ELU(), L.Softmax(axis=1),
        L.Softmax(axis=[1, 2])])


def masked():
    model = keras.Sequential([
        L.Embedding(7, 3, mask_zero=True),
        L.Bidirectional(L.LSTM(4, return_sequences=True, dropout=0.5), name="sides"),
        L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode="sum", backward_layer=L.LSTM(
            3, return_sequences=True, go_backwards=True)),
        L.SimpleRNN(4, return_sequences=True, recurrent_dropout=0.25), L.Dense(3)])
    model(np.zeros((2, 6), np.int64))
    return model


def averaged():
    x = keras.Input((5, 4))
    marked = L.Masking(0.5)(x)
    states = L.Bidirectional(L.LSTM(3, return_state=True), merge_mode=None)(marked)
    return keras.Model(x, [L.GlobalAveragePooling1D()(L.Dense(3)(marked)), *states])


def products():
    a, b = keras.Input((4,)), keras.Input((4,))
    return keras.Model([a, b], [L.Dot(1)([a, b]), L.Dot(axes=(1, 1), normalize=True)([a, b])])


def activated():
    x = keras.Input((4,))
    names = ("elu", "exponential", "gelu", "hard_sigmoid", "linear", "mish", "relu", "selu", "sigmoid",
             "softmax", "softplus", "softsign", "swish", "tanh")
    return keras.Model(x, [L.Activation(name)(L.Dense(3, activation=name)(x)) for name in names])


def of_one_batch_size():
    return keras.Sequential([keras.Input((4,), batch_size=4), L.Dense(2)])


MODELS = [images, built_by_a_call, shared, recurrent, attention, dicts, nested, words, categories, larger_images,
          masked, averaged, products, activated, of_one_batch_size]


def inputs_of(model, rng):
    def one(tensor):
        shape = (4, *(size or 6 for size in tensor.shape[1:]))
        if isinstance(model.layers[0], L.Embedding):
            return rng.integers(0, 7, shape).astype(np.float32)
        if tensor.dtype == tf.string:
            return np.array(rng.choice(["a", "b", "z"], shape), object)
        if tensor.dtype == tf.int64:
            return rng.integers(0, 7, shape)
        return rng.normal(size=shape).astype(np.float32)

    return tf.nest.map_structure(one, model.input)


def probe_json(value):
    def one(array):
        if array.dtype == object:
            return {"dtype": "string", "shape": list(array.shape),
                    "values": array.reshape(-1).tolist()}
        return as_json(array)

    return tf.nest.map_structure(one, value)


def write(model, directory):
    """The model as ModelHandle::save writes it, but by Keras."""
    directory.mkdir()
    description = json.loads(model.to_json())
    description["compile_config"] = None
    if model.optimizer is not None:
        description["compile_config"] = model.get_compile_config()
    description["cohort"] = {"checkpoint": "variables-1"}
    (directory / "model.json").write_text(json.dumps(description, default=float))
    model.save_weights(str(directory / "variables-1"))


def read(directory):
    text = (directory / "model.json").read_text()
    model = keras.models.model_from_json(text)
    compiled = json.loads(text)["compile_config"]
    if compiled is not None:
        model.compile_from_config(compiled)
    status = model.load_weights(str(directory / json.loads(text)["cohort"]["checkpoint"]))
    status.assert_existing_objects_matched()
    return model


def assert_outputs(found, expected, tolerance=1e-5):
    expected = tf.nest.flatten(expected)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_models_of_keras_and_back(probe, tmp_path, rng, make):
    model = make()
    for variable in model.weights:
        if "float" in variable.dtype.name and variable.shape.is_fully_defined():
            variable.assign(rng.uniform(0.1, 1, variable.shape).astype(np.float32))
    inputs = inputs_of(model, rng)
    expected = model(tf.nest.map_structure(tf.constant, inputs), training=False)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs),
                             "save": str(tmp_path / "cohort")})
    assert_outputs([from_json(output) for output in answer["outputs"]], expected)
    again = read(tmp_path / "cohort")
    assert [x.shape for x in again.inputs] == [x.shape for x in model.inputs]
    found = again(tf.nest.map_structure(tf.constant, inputs), training=False)
    assert_outputs([output.numpy() for output in tf.nest.flatten(found)], expected, 1e-6)


class Scale(L.Layer):
    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, input_shape):
        self.weight = self.add_weight("weight", (), initializer="ones")

    def call(self, x):
        return x * self.factor * self.weight

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


def test_layers_of_the_program_keep_their_names_and_are_trained_as_they_were(probe, tmp_path, rng):
    x = keras.Input((4,))
    inner = keras.Sequential([Scale(float("inf"), name="endless", trainable=False), L.ReLU(3.0)], name="inner")
    free = Scale(0.5, name="free", dtype="float64")
    model = keras.Model(x, L.Dense(1)(inner(Scale(2.0, name="frozen", trainable=False)(free(x)))))
    model.compile("sgd", "mse")
    inputs = rng.uniform(0.1, 1, (8, 4)).astype(np.float32)
    labels = rng.uniform(size=(8, 1)).astype(np.float32)
    write(model, tmp_path / "keras")
    probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(inputs), "labels": as_json(labels),
                    "steps": 1, "save": str(tmp_path / "cohort")})
    with keras.utils.custom_object_scope({"Scale": Scale}):
        again = read(tmp_path / "cohort")
    assert [layer.name for layer in again.layers] == [layer.name for layer in model.layers]
    assert not again.get_layer("frozen").trainable and again.get_layer("free").trainable
    endless = again.get_layer("inner").get_layer("endless")
    assert endless.factor == float("inf") and not endless.trainable
    assert again.get_layer("frozen").weight.numpy() == 1
    assert again.get_layer("free").weight.dtype == "float64" and again.get_layer("frozen").weight.dtype == "float32"


def test_masks_count_in_losses_and_metrics(probe, tmp_path, rng):
    model = keras.Sequential.from_config(without_dropout(masked().get_config()))
    inputs = rng.integers(0, 7, (4, 6)).astype(np.float32)
    model(inputs)
    labels = rng.integers(0, 3, (4, 6)).astype(np.float32)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.1), loss, metrics=["accuracy"])
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs),
                             "labels": as_json(labels), "steps": 2})
    logs = [model.train_on_batch(inputs, labels, return_dict=True) for _ in range(2)]
    np.testing.assert_allclose(answer["losses"], [one["loss"] for one in logs], rtol=1e-4)
    np.testing.assert_allclose(answer["logs"][1]["accuracy"], logs[1]["accuracy"], rtol=1e-5)


def without_dropout(config):  # what is random in training cannot be compared
    text = json.dumps(config, default=float)
    return json.loads(text.replace('"dropout": 0.5', '"dropout": 0.0')
                      .replace('"recurrent_dropout": 0.25', '"recurrent_dropout": 0.0'))


@pytest.mark.parametrize("optimizer", [
    "adam", keras.optimizers.SGD(keras.optimizers.schedules.CosineDecay(0.1, 10), momentum=0.9),
    keras.optimizers.RMSprop(0.01, clipnorm=0.5), keras.optimizers.AdamW(0.01)],
    ids=["adam", "schedule", "clipped", "adamw"])
def test_training_goes_on_where_keras_stopped_and_back(probe, tmp_path, rng, optimizer):
    x = keras.Input((4,))
    model = keras.Model(x, L.Dense(3)(L.Dense(5, activation="tanh")(x)))
    model.compile(optimizer, keras.losses.Huber(0.5), metrics=["mae", keras.metrics.AUC()])
    inputs = rng.normal(size=(8, 4)).astype(np.float32)
    labels = rng.uniform(size=(8, 3)).astype(np.float32)
    for _ in range(2):
        model.train_on_batch(inputs, labels)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(inputs),
                             "labels": as_json(labels), "steps": 2,
                             "save": str(tmp_path / "cohort")})
    expected = [model.train_on_batch(inputs, labels, return_dict=True)["loss"] for _ in range(2)]
    np.testing.assert_allclose(answer["losses"], expected, rtol=1e-4)
    again = read(tmp_path / "cohort")
    found = [again.train_on_batch(inputs, labels, return_dict=True)["loss"] for _ in range(2)]
    further = [model.train_on_batch(inputs, labels, return_dict=True)["loss"] for _ in range(2)]
    np.testing.assert_allclose(found, further, rtol=1e-4)


@pytest.mark.parametrize("make", [
    lambda: keras.metrics.MeanIoU(3, ignore_class=2),
    lambda: keras.metrics.IoU(3, [0, 1], sparse_y_pred=False, sparse_y_true=False),
    lambda: keras.metrics.OneHotIoU(3, [0, 2]), lambda: keras.metrics.OneHotMeanIoU(3),
    lambda: keras.metrics.BinaryIoU([1], threshold=0.4),
    lambda: keras.metrics.MeanRelativeError([1.0, 2.0, 4.0]),
    lambda: keras.metrics.PrecisionAtRecall(0.5, num_thresholds=20),
    lambda: keras.metrics.RecallAtPrecision(0.5), lambda: keras.metrics.SensitivityAtSpecificity(0.5),
    lambda: keras.metrics.SpecificityAtSensitivity(0.5)], ids=lambda make: make().name)
def test_metrics_of_compile_both_ways(probe, tmp_path, rng, make):
    model = keras.Sequential([keras.Input((4,)), L.Dense(3, activation="sigmoid")])
    metric = make()
    model.compile("sgd", "mse", metrics=[metric])
    inputs = rng.normal(size=(20, 4)).astype(np.float32)
    labels = rng.integers(0, 2, (20, 3)).astype(np.float32)
    model.train_on_batch(inputs, labels)
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": as_json(inputs),
                             "labels": as_json(labels), "steps": 2,
                             "save": str(tmp_path / "cohort")})

    def numbers_of(model):
        return [model.train_on_batch(inputs, labels, return_dict=True)[metric.name] for _ in range(2)]

    np.testing.assert_allclose([one[metric.name] for one in answer["logs"]], numbers_of(model), rtol=1e-5)
    np.testing.assert_allclose(numbers_of(read(tmp_path / "cohort")), numbers_of(model), rtol=1e-5)


@pytest.mark.parametrize("optimizer,options", [
    ("Adam", {"learning_rate": 0.01}), ("SGD", {"learning_rate": 0.1, "momentum": 0.9})])
def test_weights_hold_the_optimizer_both_ways(probe, tmp_path, rng, optimizer, options):
    def make():
        model = keras.Sequential([keras.Input((4,)), L.Dense(5, activation="tanh"), L.Dense(3)])
        model.compile(getattr(keras.optimizers, optimizer)(**options), "mse")
        return model

    def losses_of(model):
        return [model.train_on_batch(inputs, labels) for _ in range(2)]

    inputs = rng.normal(size=(8, 4)).astype(np.float32)
    labels = rng.uniform(size=(8, 3)).astype(np.float32)
    model = make()
    losses_of(model)
    model.save_weights(str(tmp_path / "theirs"))
    answer = probe("weights", {"json": model.to_json(), "load": str(tmp_path / "theirs"),
                               "optimizer": {"class": optimizer, "options": options},
                               "inputs": as_json(inputs), "labels": as_json(labels), "steps": 2,
                               "save": str(tmp_path / "ours")})
    assert answer["loaded"] == 2
    np.testing.assert_allclose(answer["losses"], losses_of(model), rtol=1e-4)
    assert (tf.train.list_variables(str(tmp_path / "ours"))
            == tf.train.list_variables(str(tmp_path / "theirs")))
    again = make()
    again.load_weights(str(tmp_path / "ours"))
    np.testing.assert_allclose(losses_of(again), losses_of(model), rtol=1e-4)
    assert int(again.optimizer.iterations) == 6


TEXTS = ["The cat, sat.", "  a cat\tand a DOG!\n", "", "Caf\u00e9-bar  \u4f60\u597d", "it's 5 o'clock", "sat sat"]
WORDS = ["cat", "the", "sat", "a", "a cat", "c", "t", "caf\u00e9bar", "5", "sat sat"]


@pytest.mark.parametrize("options", [
    {}, {"standardize": "lower"}, {"standardize": "strip_punctuation"}, {"standardize": None},
    {"split": "character"}, {"split": None}, {"ngrams": 2}, {"ngrams": (2,)},
    {"ngrams": (1, 3), "output_sequence_length": 4}, {"output_sequence_length": 2},
    {"output_mode": "multi_hot"}, {"output_mode": "count", "ngrams": 2},
    {"output_mode": "multi_hot", "pad_to_max_tokens": True, "max_tokens": 20},
    {"output_mode": "tf_idf", "idf_weights": [0.1 * i for i in range(len(WORDS))]}], ids=str)
def test_text_vectorization(probe, tmp_path, options):
    text = keras.Input((1,), dtype="string")
    model = keras.Model(text, L.TextVectorization(vocabulary=WORDS, **options)(text))
    inputs = np.array(TEXTS, object).reshape(-1, 1)
    expected = model(tf.constant(inputs))
    write(model, tmp_path / "keras")
    answer = probe("model", {"path": str(tmp_path / "keras"), "inputs": probe_json(inputs),
                             "save": str(tmp_path / "cohort")})
    assert_outputs([from_json(output) for output in answer["outputs"]], expected, 1e-6)
    if not isinstance(options.get("ngrams"), tuple):  # which Keras does not read back from its own
        assert_outputs([read(tmp_path / "cohort")(tf.constant(inputs)).numpy()], expected, 1e-6)
