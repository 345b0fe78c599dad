"""Fixtures of the interop tests: the C++ probe."""

import numpy as np
import pytest
import tensorflow as tf

from probe_process import probe_of_session

# Two devices for tests of several replicas: to be said before any test has used TensorFlow.
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0],
                                           [tf.config.LogicalDeviceConfiguration()] * 2)


def as_json(array):
    """An array as the probe reads it; null for None."""
    if array is None:
        return None
    array = np.asarray(array)
    return {"dtype": str(array.dtype), "shape": list(array.shape),
            "values": array.reshape(-1).tolist()}


def from_json(tensor):
    return np.array(tensor["values"], tensor["dtype"]).reshape(tensor["shape"])


@pytest.fixture(scope="session")
def probe():
    yield from probe_of_session()
