"""Fixtures of the interop tests: the C++ probe."""

import json
import os
import subprocess

import numpy as np
import pytest


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
    """probe(command, request) -> the probe's answer."""
    program = os.environ.get("COHORT_PROBE")
    assert program, "COHORT_PROBE must name the interop_probe program; run scripts/interop"

    def ask(command, request):
        done = subprocess.run(
            [program, command], input=json.dumps(request), capture_output=True, text=True,
            timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask
