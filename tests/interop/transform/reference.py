"""Runs a case with real tensorflow-transform: what must come out of cohort/transform.

Usage: python reference.py DIRECTORY [CASE...]

Writes for every case (or those named) DIRECTORY/CASE/: case.json, {"function": its name, "columns": the
raw columns as columns.py writes them, "batch" and "epsilon" as in cases.py} and either "transformed", the columns
that came out, with "vocabularies", {name: {"file", "size"}}, or "refused", the error's text; and the
vocabulary files.
Takes three minutes of a core for all.
"""

import dataclasses
import json
import logging
import os
import pathlib
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.disable(logging.CRITICAL)  # Beam tells every refusal on a page

# pylint: disable=wrong-import-position
import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, schema_utils

from columns import Column


@dataclasses.dataclass
class Result:
    columns: dict = None  # name -> Column
    files: dict = None  # vocabulary's name -> bytes
    sizes: dict = None  # vocabulary's name -> its size as TFTransformOutput gives it
    refused: str = None


def _feature_spec(columns):
    return {name: tf.io.VarLenFeature(tf.as_dtype(column.dtype)) if column.ragged else
                  tf.io.FixedLenFeature(list(column.shape), tf.as_dtype(column.dtype))
            for name, column in columns.items()}


def _rows(columns):
    names = list(columns)
    return [dict(zip(names, row)) for row in zip(*(columns[name].entries for name in names))]


def _collect(name, feature, rows):
    """The Column of an output from Beam's rows."""
    values = [row.get(name) for row in rows]
    dtype = feature.dtype.name
    if isinstance(feature, tf.io.VarLenFeature):
        return Column(dtype, [[] if value is None else list(value) for value in values], ragged=True)
    return Column(dtype, [np.asarray(value).tolist() for value in values] if feature.shape else values,
                  shape=tuple(feature.shape))


def run(case):
    """Analyzes the case's columns and transforms them, all in this process."""
    folder = tempfile.mkdtemp(prefix="transform.")
    try:
        return _run(case, folder)
    except Exception as error:  # pylint: disable=broad-exception-caught
        # Beam and TensorFlow raise what they please: a refusal is whatever ends it.
        if not case.refused:
            raise
        return Result(refused=f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(folder)


def _run(case, folder):
    metadata = dataset_metadata.DatasetMetadata(
        schema_utils.schema_from_feature_spec(_feature_spec(case.columns)))
    directory = os.path.join(folder, "output")
    # A folder of its own: TensorFlow shares tables of equally named files in one process.
    with tft_beam.Context(temp_dir=os.path.join(folder, "temporary"), desired_batch_size=case.batch):
        (rows, _), transform = (_rows(case.columns), metadata) | \
            tft_beam.AnalyzeAndTransformDataset(case.function)
        _ = transform | tft_beam.WriteTransformFn(directory)
    output = tft.TFTransformOutput(directory)
    columns = {name: _collect(name, feature, rows)
               for name, feature in output.transformed_feature_spec().items()}
    names = _vocabulary_names(directory)
    return Result(columns,
                  {name: pathlib.Path(output.vocabulary_file_by_name(name)).read_bytes()
                   for name in names},
                  {name: int(output.vocabulary_size_by_name(name)) for name in names})


def _vocabulary_names(directory):
    asset_map = pathlib.Path(directory, "transformed_metadata", "asset_map")
    return sorted(json.loads(asset_map.read_text())) if asset_map.exists() else []


def _text(columns):
    return {name: column.text() for name, column in columns.items()}


def write(case, result, folder):
    folder.mkdir(parents=True)
    written = {"function": case.function.__name__, "columns": _text(case.columns),
               "batch": case.batch, "epsilon": case.epsilon}
    if result.refused:
        written["refused"] = result.refused
    else:
        written["transformed"] = _text(result.columns)
        written["vocabularies"] = {}
        for number, (name, content) in enumerate(result.files.items()):
            written["vocabularies"][name] = {"file": f"{number}.txt", "size": result.sizes[name]}
            (folder / f"{number}.txt").write_bytes(content)
    (folder / "case.json").write_text(json.dumps(written))


def main():
    from cases import CASES  # pylint: disable=import-outside-toplevel
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    directory, *names = sys.argv[1:]
    sys.argv = sys.argv[:1]  # Beam reads options of its own from there
    for name in names or CASES:
        write(CASES[name], run(CASES[name]), pathlib.Path(directory, name))


if __name__ == "__main__":
    main()
