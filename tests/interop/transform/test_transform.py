"""Every case of cases.py: cohort/transform gives what real tensorflow-transform gave.

The latter is read from the directory that reference.py wrote: TensorFlow need not run again.
"""

import bisect
import json
import math
import os
import pathlib

import pytest

from columns import from_text

REFERENCE = pathlib.Path(os.environ["COHORT_TRANSFORM_REFERENCE"])
CASES = sorted(folder.name for folder in REFERENCE.iterdir())

# tensorflow-transform sums batches in float32, Cohort exactly.
RELATIVE, ABSOLUTE = 2e-5, 1e-6
# A case whose sums cancel: float32 leaves fewer digits.
LOOSE = {"analyzers_large": 1e-4, "scale_large": 1e-4}


def _near(expected, actual, relative):
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(
            _near(*values, relative) for values in zip(expected, actual))
    if not isinstance(expected, float):
        return expected == actual
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(expected, actual, rel_tol=relative, abs_tol=ABSOLUTE)


def _check_ranks(boundaries, values, epsilon):
    """That boundary i divides off i parts of the values, but for epsilon of them."""
    values = sorted(values)
    for i, boundary in enumerate(boundaries, start=1):
        wanted = i * len(values) / (len(boundaries) + 1)
        error = max(bisect.bisect_left(values, boundary) - wanted,
                    wanted - bisect.bisect_right(values, boundary), 0)
        assert error <= epsilon * len(values), f"boundary {i}, {boundary}: off by {error} values"


@pytest.mark.parametrize("name", CASES)
def test_transformed_columns_and_vocabularies_are_those_of_tensorflow_transform(
        name, probe, tmp_path):
    expected = json.loads((REFERENCE / name / "case.json").read_text())
    actual = probe("transform", {"function": expected["function"], "columns": expected["columns"],
                                 "batch": expected["batch"], "directory": str(tmp_path),
                                 "vocabularies": list(expected.get("vocabularies", {}))})
    if "refused" in expected:
        assert "refused" in actual, f"not refused; tensorflow-transform: {expected['refused']}"
        return
    assert "refused" not in actual, actual["refused"]

    outputs = actual["transformed"] | actual["statistics"]
    assert set(outputs) == set(expected["transformed"])
    for output, written in expected["transformed"].items():
        theirs, ours = from_text(written), from_text(outputs[output])
        if output in actual["statistics"]:  # which theirs has in every row
            theirs.entries = theirs.entries[:1]
        assert (ours.dtype, ours.ragged, ours.shape) == (
            theirs.dtype, theirs.ragged, theirs.shape), output
        if expected["epsilon"]:
            values = from_text(expected["columns"]["x"]).entries
            for side in (theirs, ours):
                _check_ranks(side.entries[0], values, expected["epsilon"])
            continue
        assert _near(theirs.entries, ours.entries, LOOSE.get(name, RELATIVE)), (
            f"{output}: {ours.entries}, not {theirs.entries}")

    for vocabulary, theirs in expected["vocabularies"].items():
        ours = actual["vocabularies"][vocabulary]
        assert ours["size"] == theirs["size"], vocabulary
        content = pathlib.Path(ours["file"]).read_bytes()
        assert content == (REFERENCE / name / theirs["file"]).read_bytes(), vocabulary
