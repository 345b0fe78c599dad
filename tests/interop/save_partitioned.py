"""Saves a model and an optimizer whose variables TensorFlow's ParameterServerStrategy has divided, in a process of
its own, which stays connected to the cluster.

Usage: python3 save_partitioned.py OPTIMIZER SHARDS DIRECTORY

Writes DIRECTORY/ckpt, and DIRECTORY/values.npz: the weights and the optimizer's variables, whole, as a program without
the strategy has them.
"""

import re
import socket
import sys

import numpy as np
import tensorflow as tf

from test_checkpoints import Program


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return addresses


def whole(variables):
    """Parts, which follow one another but for those of other slots, as one."""
    found = {}
    for variable in variables:
        name = re.sub(r"/part_\d+", "", variable.name)
        found.setdefault(name, []).append(variable.numpy())
    return [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in found.values()]


def main():
    optimizer, shards, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    addresses = free_addresses(3)
    cluster = tf.train.ClusterSpec({"worker": addresses[:1], "ps": addresses[1:]})
    servers = [tf.distribute.Server(cluster, job_name=job, task_index=i, protocol="grpc")
               for job, i in [("worker", 0), ("ps", 0), ("ps", 1)]]
    strategy = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc"),
        variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(shards))
    with strategy.scope():
        program = Program("embedding", optimizer)
        program.build()
    random = np.random.default_rng(5)
    for variable in [*program.model.trainable_variables, *program.optimizer.variables[1:]]:
        if variable.dtype.is_floating and variable.shape.rank > 0:
            variable.assign(random.random(variable.shape, dtype=np.float32))
    program.optimizer.iterations.assign(3)
    program.checkpoint.write(directory + "/ckpt")
    np.savez(directory + "/values.npz",
             *whole(program.model.trainable_variables), *whole(program.optimizer.variables),
             weights=len(whole(program.model.trainable_variables)))
    del servers


if __name__ == "__main__":
    main()
