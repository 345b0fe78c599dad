"""TensorFlow's turn of bench/fit.py: tf.keras fit of guide 004's model, plain or on MirroredStrategy; or,
where TF_CONFIG names a task of a parameter server cluster, guide 001's fit by its chief.

Usage: python3 -m peers.tensorflow_fit SAMPLES THREADS plain|mirrored, with commands as in turns.py; the
batch is that of all replicas. A variant is OPTIMIZER,STEPS: keras or legacy, steps_per_execution.
       python3 -m peers.tensorflow_fit cluster THREADS; the chief knows "fit SECONDS" and "version".
"""

import gc
import os
import sys
import time

os.environ["GRPC_FAIL_FAST"] = "use_caller"

import numpy as np
import tensorflow as tf

import samples
from peers import tensorflow_models, turns

EPOCHS = 3
STEPS_PER_EXECUTION = 10  # of the cluster's


class EpochEnds(tf.keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.times = []

    def on_epoch_end(self, epoch, logs=None):
        self.times.append(time.perf_counter())


def seconds_of_epoch(model, data, steps):
    """As EpochTraining::epoch of bench/fit_training.h."""
    ends = EpochEnds()
    model.fit(data, epochs=EPOCHS, steps_per_epoch=steps, verbose=0, callbacks=[ends])
    return (ends.times[-1] - ends.times[0]) / (EPOCHS - 1)


def run_of(model, data, per):
    """run(count) -> seconds of so many steps, by two epochs of half as many, `per` an execution."""
    def run(count):
        steps = max(1, count // 2 // per) * per
        return seconds_of_epoch(model, data, steps) / steps * count

    return run


class Peer:
    def __init__(self, directory, strategy):
        self.directory = directory
        self.strategy = strategy

    def dataset(self, model, batch):
        inputs, dtype, shape, labels = samples.read(self.directory, model)
        inputs = np.frombuffer(inputs, dtype).reshape(shape)
        labels = np.frombuffer(labels, np.int64)
        chosen = list(samples.ranges(batch))
        x = np.concatenate([inputs[one] for one, _ in chosen])
        y = np.concatenate([labels[one] for _, one in chosen])
        return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(
            batch).repeat().prefetch(tf.data.AUTOTUNE)

    def training(self, variant, model, batch):
        optimizer, steps_per_execution = variant.split(",")
        per = int(steps_per_execution)
        with self.strategy.scope() if self.strategy else tf.name_scope(""):
            made = tensorflow_models.make(model)
            made.compile(optimizer=tensorflow_models.make_optimizer(model, optimizer == "legacy"),
                         loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                         metrics=["accuracy"], steps_per_execution=per)
        return turns.Training(run_of(made, self.dataset(model, batch), per), batch)

    def parameters(self, model):
        return sum(int(tf.size(v)) for v in tensorflow_models.make(model).trainable_variables)

    def forget(self):
        gc.collect()

    def version(self):
        return f"TensorFlow {tf.__version__}"


def dataset_fn(context):
    x = tf.random.uniform((10, 10))
    y = tf.random.uniform((10, 1))
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(10).repeat()
    dataset = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    return dataset.batch(context.get_per_replica_batch_size(64)).prefetch(2)


def run_task(threads):
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
        tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,
                             task_index=resolver.task_id, protocol="grpc", config=config).join()
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver)
    with strategy.scope():
        model = tf.keras.models.Sequential([tf.keras.layers.Dense(10)])
        model.compile(tf.keras.optimizers.legacy.SGD(), loss="mse",
                      steps_per_execution=STEPS_PER_EXECUTION)
    data = tf.keras.utils.experimental.DatasetCreator(dataset_fn)
    run = run_of(model, data, STEPS_PER_EXECUTION)
    for line in sys.stdin:
        work, *seconds = line.split()
        print(f"TensorFlow {tf.__version__}" if work == "version"
              else 1 / turns.time_steps(run, float(*seconds)), flush=True)


def main():
    directory, threads, *kind = sys.argv[1:]
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    if directory == "cluster":
        run_task(int(threads))
        return
    strategy = None
    if kind == ["mirrored"]:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration() for _ in range(2)])
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    turns.serve(Peer(directory, strategy))


if __name__ == "__main__":
    main()
