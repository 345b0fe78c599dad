"""tensorflow-transform on Beam's local runner: its turn of bench/transform.py.

Usage: python3 -m peers.tensorflow_transform_beam WORK DIRECTORY ROWS MODE WORKERS BATCH

WORK: sums (mean and variance of 10 columns), quantiles (100 buckets of 10 columns), vocabulary. MODE
and WORKERS: Beam's direct_running_mode (in_memory, multi_threading, multi_processing) and
direct_num_workers. BATCH: rows of an Arrow record batch, tensorflow-transform's own fast input.

Analyzes the files of transform_data.py once, and prints {"seconds", "cpu_seconds", "peak_mib",
"version"}: CPU of all its threads and processes, the peak of the largest. Of the seconds about three go
to what does not depend on the data (graphs, SavedModels); run it with 1000 rows to see them.
"""

import json
import logging
import os
import pathlib
import resource
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.disable(logging.WARNING)

# pylint: disable=wrong-import-position
import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow as tf
import tensorflow_transform as tft
import tensorflow_transform.beam as tft_beam
from apache_beam.options.pipeline_options import PipelineOptions
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx_bsl.tfxio import tensor_adapter

import transform_data


def _numbers(directory, begin, end):
    return {f"x{column}": pa.array(np.fromfile(
        transform_data.number_file(directory, column), "<f4", end - begin, offset=4 * begin))
            for column in range(transform_data.NUMBER_COLUMNS)}


def _tokens(directory, begin, end):
    width = transform_data.TOKEN_BYTES
    content = np.fromfile(transform_data.token_file(directory), np.uint8, width * (end - begin),
                          offset=width * begin)
    offsets = np.arange(0, content.size + 1, width, np.int64)
    return {"token": pa.Array.from_buffers(pa.large_binary(), end - begin,
                                           [None, pa.py_buffer(offsets), pa.py_buffer(content)])}


def _record_batch(span, directory, read):
    columns = read(directory, *span)
    rows = pa.array(np.arange(span[1] - span[0] + 1, dtype=np.int64))
    return pa.RecordBatch.from_arrays(
        [pa.LargeListArray.from_arrays(rows, values) for values in columns.values()], list(columns))


def _sums(inputs):
    return {name: tft.scale_to_z_score(column) for name, column in inputs.items()}


def _quantiles(inputs):
    return {name: tft.bucketize(column, transform_data.BUCKETS, epsilon=transform_data.EPSILON)
            for name, column in inputs.items()}


def _vocabulary(inputs):
    return {"id": tft.compute_and_apply_vocabulary(inputs["token"], vocab_filename="tokens")}


WORKS = {"sums": (_numbers, pa.float32(), _sums), "quantiles": (_numbers, pa.float32(), _quantiles),
         "vocabulary": (_tokens, pa.large_binary(), _vocabulary)}


def _adapter(names, dtype):
    dense = {name: text_format.Parse(f"dense_tensor {{ column_name: '{name}' shape {{}} }}",
                                     schema_pb2.TensorRepresentation()) for name in names}
    schema = pa.schema([(name, pa.large_list(dtype)) for name in names])
    return tensor_adapter.TensorAdapterConfig(schema, dense)


def _usage():
    return [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]


def _cpu_seconds():
    return sum(used.ru_utime + used.ru_stime for used in _usage())


def main():
    work, directory, rows, mode, workers, batch = sys.argv[1:]
    sys.argv = sys.argv[:1]  # Beam reads options of its own from there
    read, dtype, function = WORKS[work]
    rows, batch = int(rows), int(batch)
    spans = [(begin, min(begin + batch, rows)) for begin in range(0, rows, batch)]
    options = PipelineOptions(["--runner=DirectRunner", f"--direct_running_mode={mode}",
                               f"--direct_num_workers={workers}"])
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, "output")
        start, used = time.perf_counter(), _cpu_seconds()
        with beam.Pipeline(options=options) as pipeline, tft_beam.Context(
                temp_dir=os.path.join(folder, "temporary")):
            batches = pipeline | beam.Create(spans) | beam.Reshuffle() | beam.Map(
                _record_batch, directory, read)
            names = list(read(directory, 0, 1))
            _ = ((batches, _adapter(names, dtype)) | tft_beam.AnalyzeDataset(function) |
                 tft_beam.WriteTransformFn(output))
        seconds, used = time.perf_counter() - start, _cpu_seconds() - used
        assert pathlib.Path(output, "transform_fn", "saved_model.pb").exists()
        if work == "vocabulary":
            size = tft.TFTransformOutput(output).vocabulary_size_by_name("tokens")
            assert size > 0
    print(json.dumps({"seconds": seconds, "cpu_seconds": used,
                      "peak_mib": max(part.ru_maxrss for part in _usage()) / 1024,
                      "version": f"tensorflow-transform {tft.__version__}, Beam {beam.__version__}, "
                                 f"TensorFlow {tf.__version__}"}))


if __name__ == "__main__":
    main()
