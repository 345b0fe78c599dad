"""Checkpoints both ways: TensorFlow restores what Cohort saved, Cohort what TensorFlow saved."""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from conftest import as_json, from_json

layers = tf.keras.layers
optimizers = tf.keras.optimizers


class Block(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.a = layers.Dense(5, activation="relu")
        self.blocks = [layers.Dense(6, activation="tanh"), layers.Dense(4)]

    def call(self, x):
        return self.blocks[1](self.blocks[0](self.a(x)))


class Nested(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = Block()
        self.out = layers.Dense(3)

    def call(self, x):
        return self.out(self.inner(x))


def branches():
    x = tf.keras.Input((6,), name="x")
    left = layers.Dense(4, activation="relu")(x)
    right = layers.Dense(4)(layers.Dense(7, activation="tanh")(x))
    return tf.keras.Model(x, layers.Dense(3)(layers.Concatenate()([left, right])))


def guide_004():
    l2 = tf.keras.regularizers.L2(1e-5)
    return tf.keras.Sequential([
        layers.Conv2D(32, 3, activation="relu", kernel_regularizer=l2),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, activation="relu", kernel_regularizer=l2),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(64, activation="relu", kernel_regularizer=l2),
        layers.Dense(10, kernel_regularizer=l2),
    ])


MODELS = {
    "guide_004": guide_004,
    "nested": Nested,
    "functional": branches,
    "embedding": lambda: tf.keras.Sequential(
        [layers.Embedding(10, 4, input_length=5), layers.Flatten(), layers.Dense(3)]),
    "dense": lambda: tf.keras.Sequential([layers.Dense(5, activation="tanh"), layers.Dense(3)]),
    "lookup": lambda: tf.keras.Sequential(
        [layers.IntegerLookup(vocabulary=[7, 2, 5], output_mode="multi_hot"), layers.Dense(3)]),
    "lookup_idf": lambda: tf.keras.Sequential(
        [layers.IntegerLookup(vocabulary=[7, 2, 5], idf_weights=[1.5, 0.5, 2],
                              output_mode="tf_idf"), layers.Dense(3)]),
    "lookup_learned": lambda: tf.keras.Sequential([learned_lookup(), layers.Dense(3)]),
}


def learned_lookup():
    """Tables that hold something of their own: the counts of what was learned."""
    lookup = layers.IntegerLookup(output_mode="multi_hot")
    lookup.adapt(np.arange(5).reshape(1, 5))  # what it learns from decides the rank of its calls
    return lookup


RATE = {"learning_rate": 0.01}
OPTIMIZERS = {
    "adam": ("Adam", RATE),
    "sgd": ("SGD", {"learning_rate": 0.05}),
    "momentum": ("SGD", {"learning_rate": 0.05, "momentum": 0.9}),
    "rmsprop": ("RMSprop", RATE),
    "rmsprop_centered": ("RMSprop", {**RATE, "momentum": 0.9, "centered": True}),
    "amsgrad": ("Adam", {**RATE, "amsgrad": True}),
    "adamw": ("AdamW", RATE),
    "adafactor": ("Adafactor", RATE),
    "adagrad": ("Adagrad", RATE),
    "adadelta": ("Adadelta", {"learning_rate": 1.0}),
    "adamax": ("Adamax", RATE),
    "nadam": ("Nadam", RATE),
    "ftrl": ("Ftrl", {"learning_rate": 0.1}),
    "averages": ("RMSprop", {**RATE, "momentum": 0.9, "use_ema": True, "ema_momentum": 0.9}),
    "schedule": ("Adam", {"learning_rate": {
        "schedule": "ExponentialDecay", "initial_learning_rate": 0.01, "decay_steps": 2,
        "decay_rate": 0.5}}),
}


def keras_optimizer(name):
    class_name, options = OPTIMIZERS[name]
    options = dict(options)
    if isinstance(options["learning_rate"], dict):
        schedule = dict(options["learning_rate"])
        options["learning_rate"] = getattr(
            optimizers.schedules, schedule.pop("schedule"))(**schedule)
    return getattr(optimizers, class_name)(**options)


CASES = [
    ("guide_004", "adam"),
    ("nested", "adam"),
    ("functional", "momentum"),
    ("embedding", "adam"),
    ("embedding", "momentum"),
    ("lookup", "adam"),
    ("lookup_idf", "adam"),
] + [("dense", name) for name in OPTIMIZERS]


def batch_for(model):
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, 8)
    if model == "guide_004":
        return random.random((8, 28, 28, 1), dtype=np.float32), labels
    if model == "embedding" or model.startswith("lookup"):
        return random.integers(0, 10, (8, 5)), labels
    return random.random((8, 6), dtype=np.float32), labels


class Program:
    """The same program as the probe's, in Keras."""

    def __init__(self, model, optimizer):
        tf.keras.utils.set_random_seed(3)
        self.inputs, self.labels = batch_for(model)
        self.model = MODELS[model]()
        self.optimizer = keras_optimizer(optimizer)
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.checkpoint = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer)

    def build(self):
        self.model(self.inputs)
        self.optimizer.build(self.model.trainable_variables)

    def train(self):
        with tf.GradientTape() as tape:
            loss = self.loss(self.labels, self.model(self.inputs, training=True))
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

    def predictions(self):
        return self.model(self.inputs).numpy()


def request(model, optimizer, **more):
    inputs, labels = batch_for(model)
    class_name, options = OPTIMIZERS[optimizer]
    return {"model": model, "optimizer": {"class": class_name, "options": options}, "replicas": 1, "inputs": as_json(inputs),
            "labels": as_json(labels), **more}


def ask(probe, what):
    try:
        return probe("checkpoint", what)
    finally:
        probe.close("checkpoint")  # logical devices are fixed for the life of a process


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("model,optimizer", CASES)
def test_tensorflow_restores_ours(probe, tmp_path, model, optimizer, replicas):
    answer = ask(probe, request(model, optimizer, action="save", steps=3,
                                prefix=str(tmp_path / "ckpt"), replicas=replicas))
    program = Program(model, optimizer)
    program.build()
    status = program.checkpoint.read(answer["path"])
    status.assert_existing_objects_matched()
    np.testing.assert_allclose(program.predictions(), from_json(answer["predictions"]),
                               rtol=1e-5, atol=1e-5)
    assert int(program.optimizer.iterations) == 3
    if optimizer == "nadam":
        # How far its product of momentums is, Keras counts outside of checkpoints: with several
        # variables it does not go on from its own as it would have.
        return
    program.train()  # the slots are right too
    np.testing.assert_allclose(program.predictions(), from_json(answer["after_a_step"]),
                               rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model,optimizer", CASES)
def test_keys_are_tensorflows(probe, tmp_path, model, optimizer):
    answer = ask(probe, request(model, optimizer, action="save", steps=1,
                                prefix=str(tmp_path / "ours")))
    program = Program(model, optimizer)
    program.train()
    theirs = program.checkpoint.write(str(tmp_path / "theirs"))
    assert tf.train.list_variables(answer["path"]) == tf.train.list_variables(theirs)


@pytest.mark.parametrize("built", [True, False], ids=["built", "deferred"])
@pytest.mark.parametrize("model,optimizer", CASES)
def test_we_restore_tensorflows(probe, tmp_path, model, optimizer, built):
    program = Program(model, optimizer)
    for _ in range(3):
        program.train()
    path = program.checkpoint.write(str(tmp_path / "ckpt"))
    answer = ask(probe, request(model, optimizer, action="restore", path=path, built=built))
    np.testing.assert_allclose(from_json(answer["predictions"]), program.predictions(),
                               rtol=1e-5, atol=1e-5)
    assert answer["iterations"] == 3
    program.train()
    np.testing.assert_allclose(from_json(answer["after_a_step"]), program.predictions(),
                               rtol=1e-3, atol=1e-4)


def test_learned_vocabularies_are_no_obstacle(probe, tmp_path):
    """What Keras keeps of a learned vocabulary is empty tables, and what we keep it does not know.
    The weights beside it go both ways, and both keep the vocabulary that they have."""
    answer = ask(probe, request("lookup_learned", "adam", action="save", steps=3,
                                prefix=str(tmp_path / "ours")))
    program = Program("lookup_learned", "adam")
    program.build()
    program.checkpoint.read(answer["path"]).expect_partial()
    np.testing.assert_allclose(program.predictions(), from_json(answer["predictions"]),
                               rtol=1e-5, atol=1e-5)
    assert program.model.layers[0].vocabulary_size() == 6

    for _ in range(2):
        program.train()
    path = program.checkpoint.write(str(tmp_path / "theirs"))
    assert any(".ATTRIBUTES/table-keys" in key for key, _ in tf.train.list_variables(path))
    answer = ask(probe, request("lookup_learned", "adam", action="restore", path=path, built=True,
                                partly=True))
    np.testing.assert_allclose(from_json(answer["predictions"]), program.predictions(),
                               rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [[4], [2, 2], [1, 1, 1, 1], [3, 1]])
def test_a_partitioned_variable_both_ways(probe, tmp_path, rows):
    values = np.arange(12, dtype=np.float32).reshape(4, 3) - 5

    answer = ask(probe, {"model": "partitioned", "action": "save", "values": as_json(values),
                         "rows": rows, "prefix": str(tmp_path / "ours")})
    assert ("table/.ATTRIBUTES/VARIABLE_VALUE", [4, 3]) in tf.train.list_variables(answer["path"])
    plain = tf.Variable(tf.zeros((4, 3)))
    tf.train.Checkpoint(table=plain).restore(answer["path"]).assert_consumed()
    np.testing.assert_array_equal(plain.numpy(), values)

    sharded = make_sharded(values, 3)
    tf.train.Checkpoint(table=sharded).restore(answer["path"]).assert_consumed()
    np.testing.assert_array_equal(np.concatenate([v.numpy() for v in sharded.variables]), values)

    sharded = make_sharded(values * 2, 2)
    path = tf.train.Checkpoint(table=sharded).save(str(tmp_path / "theirs"))
    answer = ask(probe, {"model": "partitioned", "action": "restore", "path": path,
                         "values": as_json(np.zeros_like(values)), "rows": rows})
    np.testing.assert_array_equal(from_json(answer["values"]), values * 2)


@pytest.mark.parametrize("built", [True, False], ids=["built", "deferred"])
@pytest.mark.parametrize("optimizer", ["adam", "momentum"])
@pytest.mark.parametrize("shards", [None, 2, 3])
def test_we_restore_the_slots_of_what_tensorflow_has_divided(probe, tmp_path, optimizer, built,
                                                            shards):
    """Without a strategy, into two shards as they were saved, and into three."""
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name("save_partitioned.py"),
                    optimizer, "2", tmp_path], check=True, timeout=120)
    path = str(tmp_path / "ckpt")
    saved = dict(tf.train.list_variables(path))
    embeddings = "model/layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    assert saved[embeddings] == [10, 4]
    assert saved["optimizer/_variables/1/.ATTRIBUTES/VARIABLE_VALUE"] == [5, 4]

    values = np.load(tmp_path / "values.npz")
    count = int(values["weights"])
    arrays = [values[f"arr_{i}"] for i in range(len(values.files) - 1)]
    program = Program("embedding", optimizer)
    program.build()
    for variable, value in zip(program.model.trainable_variables, arrays[:count]):
        variable.assign(value)
    for variable, value in zip(program.optimizer.variables, arrays[count:]):
        variable.assign(value)

    how = {} if shards is None else {"shards": shards}
    answer = ask(probe, request("embedding", optimizer, action="restore", path=path, built=built,
                                **how))
    np.testing.assert_allclose(from_json(answer["predictions"]), program.predictions(),
                               rtol=1e-5, atol=1e-5)
    assert answer["iterations"] == 3
    program.train()
    np.testing.assert_allclose(from_json(answer["after_a_step"]), program.predictions(),
                               rtol=1e-3, atol=1e-4)


def test_what_ps_tasks_have_written(tmp_path):
    """Guide 001's program, whose two ps tasks write files of their own, and its rows in two shards."""
    bin_directory = pathlib.Path(os.environ["COHORT_PROBE"]).parent
    subprocess.run([bin_directory / "parameter_server", "--in-process", "--epochs", "1",
                    "--checkpoints", tmp_path], check=True, timeout=120)
    path = tf.train.latest_checkpoint(tmp_path)
    assert len(list(tmp_path.glob("*.data-?????-of-00003"))) == 3
    exported = tmp_path / "all.safetensors"
    subprocess.run([bin_directory / "cohort", "checkpoint", "export", path, "--output",
                    exported], check=True,
                   timeout=60)
    ours = read_safetensors(exported)
    reader = tf.train.load_checkpoint(path)
    theirs = reader.get_variable_to_shape_map()
    embeddings = [key for key in ours if "embeddings" in key]
    suffix = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert embeddings and all(theirs[key + suffix] == [8, 16384] for key in embeddings)
    for key, values in ours.items():
        np.testing.assert_array_equal(reader.get_tensor(key + suffix), values)

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = layers.Embedding(8, 16384)
            self.dense = layers.Dense(1)

        def call(self, x):
            return self.dense(tf.reduce_mean(self.embedding(x), axis=1))

    model = Model()
    model(tf.zeros((1, 3), tf.int64))
    named = tf.train.Checkpoint(
        model=tf.train.Checkpoint(**{"layer_with_weights-0": model.embedding,
                                     "layer_with_weights-1": model.dense}))
    named.restore(path).assert_existing_objects_matched()
    key, = [key for key in embeddings if key.startswith("model/")]
    np.testing.assert_array_equal(model.embedding.embeddings.numpy(), ours[key])


def read_safetensors(path):
    """Tensors by name."""
    kinds = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + size])
    header.pop("__metadata__", None)
    return {name: np.frombuffer(content[8 + size:][slice(*entry["data_offsets"])],
                                kinds[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


def make_sharded(values, shards):
    from tensorflow.python.distribute import sharded_variable
    from tensorflow.python.ops import variables

    parts = []
    begin = 0
    for part in np.array_split(values, shards):
        variable = tf.Variable(part, name="table")
        variable._set_save_slice_info(variables.Variable.SaveSliceInfo(
            "table", list(values.shape), [begin, 0], list(part.shape)))
        begin += len(part)
        parts.append(variable)
    for variable in parts:
        variable._save_slice_info = None
    return sharded_variable.ShardedVariable(parts, name="table")
