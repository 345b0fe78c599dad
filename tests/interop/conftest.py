"""Fixtures of the interop tests: the C++ probe."""

import json
import os
import subprocess
import threading

import numpy as np
import pytest
import tensorflow as tf

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


class Probe:
    """probe(command, request) -> the answer. A command's process lives on between its requests."""

    def __init__(self, program):
        self._program = program
        self._processes = {}

    def __call__(self, command, request):
        process = self._processes.get(command)
        if process is None or process.poll() is not None:
            process = self._processes[command] = subprocess.Popen(
                [self._program, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # One that hangs is ended, which the empty line then shows.
        deadline = threading.Timer(60, process.kill)
        deadline.start()
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        finally:
            deadline.cancel()
        assert line, f"interop_probe {command} ended with {process.wait()}, see its output above"
        answer = json.loads(line)
        assert "failed" not in answer, answer["failed"]
        return answer

    def close(self, command):
        """Ends a command's process; the next request starts a new one."""
        process = self._processes.pop(command)
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture(scope="session")
def probe():
    program = os.environ.get("COHORT_PROBE")
    assert program, "COHORT_PROBE must name the interop_probe program; run scripts/interop"
    probe = Probe(program)
    yield probe
    for command in list(probe._processes):
        probe.close(command)
