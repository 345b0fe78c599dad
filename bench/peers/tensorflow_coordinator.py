"""TensorFlow's task in bench/coordinator.py: guide 001's program. TF_CONFIG says which task; the chief
knows the commands of bench/coordinator.cc.

Usage: python3 -m peers.tensorflow_coordinator THREADS, which are those within operations.
"""

import os
import random
import sys

os.environ["GRPC_FAIL_FAST"] = "use_caller"

import tensorflow as tf

from peers import turns

FEATURES = ["avenger", "ironman", "batman", "hulk", "spiderman", "kingkong", "wonder_woman"]
BULK_NUMBERS = (64 << 20) // 4
NOOPS_AT_A_TIME = 200
STEPS_AT_A_TIME = 20
layers = tf.keras.layers


def examples(count=200):
    features, labels = [], []
    for _ in range(count):
        chosen = random.sample(FEATURES, 3)
        features.append(chosen)
        labels.append(["yes"] if "avenger" in chosen else ["no"])
    return {"features": features, "label": labels}


class Guide:
    """Guide 001's step and input."""

    def __init__(self, strategy):
        with strategy.scope():
            feature_lookup = layers.StringLookup(vocabulary=FEATURES, mask_token=None)
            label_lookup = layers.StringLookup(vocabulary=["yes", "no"], num_oov_indices=0,
                                               mask_token=None)
            raw_feature = layers.Input(shape=(3,), dtype=tf.string, name="feature")
            raw_label = layers.Input(shape=(1,), dtype=tf.string, name="label")
            self.feature_stage = tf.keras.Model({"features": raw_feature},
                                                feature_lookup(raw_feature))
            self.label_stage = tf.keras.Model({"label": raw_label}, label_lookup(raw_label))
            model_input = layers.Input(shape=(3,), dtype=tf.int64, name="model_input")
            embedded = layers.Embedding(input_dim=len(feature_lookup.get_vocabulary()),
                                        output_dim=16384)(model_input)
            output = layers.Dense(units=1, activation="sigmoid")(tf.reduce_mean(embedded, axis=1))
            self.model = tf.keras.Model({"features": model_input}, output)
            self.optimizer = tf.keras.optimizers.legacy.RMSprop(learning_rate=0.1)
            self.accuracy = tf.keras.metrics.Accuracy()
        self.strategy = strategy
        self.examples = examples()
        self.step = tf.function(self.distributed_step)

    def dataset(self, _):
        return tf.data.Dataset.from_tensor_slices(self.examples).map(
            lambda x: ({"features": self.feature_stage(x["features"])},
                       self.label_stage(x["label"]))).shuffle(200).batch(32).repeat()

    def replica_step(self, batch, labels):
        with tf.GradientTape() as tape:
            predictions = self.model(batch, training=True)
            loss = tf.nn.compute_average_loss(tf.keras.losses.BinaryCrossentropy(
                reduction=tf.keras.losses.Reduction.NONE)(labels, predictions))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables))
        self.accuracy.update_state(labels, tf.cast(tf.greater(predictions, 0.5), tf.int64))
        return loss

    def distributed_step(self, iterator):
        losses = self.strategy.run(self.replica_step, args=next(iterator))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


class Chief:
    def __init__(self, strategy):
        guide = Guide(strategy)
        with strategy.scope():
            self.bulk = tf.Variable(tf.zeros([BULK_NUMBERS]), trainable=False)
        self.coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
        self.input = iter(self.coordinator.create_per_worker_dataset(
            lambda: strategy.distribute_datasets_from_function(guide.dataset)))
        self.guide = guide
        self.noop = tf.function(lambda: tf.constant(0))
        self.numbers = tf.zeros([BULK_NUMBERS])

    def many(self, function, args, count):
        for _ in range(count):
            self.coordinator.schedule(function, args=args)
        self.coordinator.join()

    def push(self):
        # A tensor of its own each time: of the same one the ps task keeps a copy.
        self.bulk.assign(tf.raw_ops.DeepCopy(x=self.numbers))
        self.bulk.sparse_read([0]).numpy()  # it has been assigned

    def answer(self, work, seconds):
        step, count = {
            "noop": (lambda: self.many(self.noop, (), NOOPS_AT_A_TIME), NOOPS_AT_A_TIME),
            "latency": (lambda: self.coordinator.schedule(self.noop).fetch(), 1),
            "step": (lambda: self.many(self.guide.step, (self.input,), STEPS_AT_A_TIME),
                     STEPS_AT_A_TIME),
            "pull": (lambda: self.bulk.read_value().numpy(), 1),
            "push": (self.push, 1)}[work]
        return count / turns.time_steps(turns.repeat(step), seconds)


def main():
    threads, = map(int, sys.argv[1:])
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=threads)
        tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,
                             task_index=resolver.task_id, protocol="grpc", config=config).join()
    chief = Chief(tf.distribute.experimental.ParameterServerStrategy(resolver))
    for line in sys.stdin:
        work, *seconds = line.split()
        print(f"TensorFlow {tf.__version__}" if work == "version"
              else chief.answer(work, float(*seconds)), flush=True)


if __name__ == "__main__":
    main()
