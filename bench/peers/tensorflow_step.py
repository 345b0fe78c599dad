"""TensorFlow's turn of bench/step.py: plain, MirroredStrategy on two logical CPUs, or a worker of a
MultiWorkerMirroredStrategy, which TF_CONFIG names.

Usage: python3 -m peers.tensorflow_step SAMPLES THREADS plain|mirrored|worker, with commands as in
turns.py; THREADS are those within operations. Variants: LSTM,OPTIMIZER with looped or unrolled,
keras or legacy optimizers; of an empty step: eager or function.
"""

import gc
import sys

import numpy as np
import tensorflow as tf

import samples
from peers import tensorflow_models, turns


def batches(directory, model, batch, strategy):
    """What each step gets: the replicas' inputs and labels, or plain tensors without a strategy."""
    inputs, dtype, shape, labels = samples.read(directory, model)
    inputs = np.frombuffer(inputs, dtype).reshape(shape)
    labels = tensorflow_models.labels_of(model, np.frombuffer(labels, np.int64))
    replicas = strategy.num_replicas_in_sync if strategy else 1
    for chosen_inputs, chosen_labels in samples.ranges(batch * replicas):
        def piece(context, chosen_inputs=chosen_inputs, chosen_labels=chosen_labels):
            rank = context.replica_id_in_sync_group if context else 0
            mine = slice(rank * batch, (rank + 1) * batch)
            chosen = tensorflow_models.inputs_of(model, inputs[chosen_inputs][mine])
            return (tf.nest.map_structure(tf.constant, chosen), tf.constant(labels[chosen_labels][mine]))
        yield (strategy.experimental_distribute_values_from_function(piece) if strategy
               else piece(None))


class Training:
    """Guide 004's step, on a strategy or without one."""

    def __init__(self, directory, variant, name, batch, strategy):
        unrolled, optimizer = variant.split(",")
        self.strategy = strategy
        self.global_batch = batch * (strategy.num_replicas_in_sync if strategy else 1)
        with strategy.scope() if strategy else tf.name_scope(""):
            self.model = tensorflow_models.make(name, unroll=unrolled == "unrolled")
            self.optimizer = tensorflow_models.make_optimizer(name, optimizer == "legacy")
            self.loss = tensorflow_models.loss_of(name)
            self.accuracy = None
            if name == "cnn":  # guide 004's step has one
                self.accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
        self.batches = list(batches(directory, name, batch, strategy))
        self.function = tf.function(self.distributed_step if strategy else self.train_step)

    def train_step(self, inputs, labels):
        with tf.GradientTape() as tape:
            logits = self.model(inputs, training=True)
            loss = tf.nn.compute_average_loss(self.loss(labels, logits),
                                              global_batch_size=self.global_batch)
            if self.model.losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(self.model.losses))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        if self.accuracy is not None:
            self.accuracy.update_state(labels, logits)
        return loss

    def distributed_step(self, inputs, labels):
        losses = self.strategy.run(self.train_step, args=(inputs, labels))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    def step(self, inputs, labels):
        return float(self.function(inputs, labels).numpy())


class Peer:
    def __init__(self, directory, strategy):
        self.directory = directory
        self.strategy = strategy

    def training(self, variant, model, batch):
        training = Training(self.directory, variant, model, batch, self.strategy)
        return turns.over(training.batches, training.step, training.global_batch)

    def empty(self, variant):
        def step():
            self.strategy.run(lambda: None)

        run = turns.repeat(tf.function(step) if variant == "function" else step)
        run(3)
        return run

    def parameters(self, model):
        return sum(int(tf.size(v)) for v in tensorflow_models.make(model).trainable_variables)

    def forget(self):
        gc.collect()

    def version(self):
        return f"TensorFlow {tf.__version__}"


def main():
    directory, threads, kind = sys.argv[1:]
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    strategy = None
    if kind == "mirrored":
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    elif kind == "worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    turns.serve(Peer(directory, strategy))


if __name__ == "__main__":
    main()
