"""TensorBoard's own readers show what Cohort recorded, and it is what TensorFlow records."""

import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_profiler
from tensorflow.tsl.profiler.protobuf import trace_events_pb2
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.context import RequestContext
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.image import metadata as image_metadata
from tensorboard.plugins.scalar import metadata as scalar_metadata
from tensorboard.plugins.text import metadata as text_metadata

from conftest import as_json


def strings_json(values):
    values = np.array(values, object)
    return {"dtype": "string", "shape": list(values.shape), "values": values.reshape(-1).tolist()}


RANDOM = np.random.default_rng(1)
RECORDS = [
    {"kind": "scalar", "name": "loss", "step": 0, "data": np.float32(0.25)},
    {"kind": "scalar", "name": "loss", "step": 1, "data": np.float32(-1e-20)},
    {"kind": "scalar", "name": "loss", "step": 5, "data": np.float64(1 / 3)},
    {"kind": "scalar", "name": "count/items", "step": 5, "data": np.int64(12), "description": "*n*"},
    {"kind": "scalar", "name": "na\u00efve", "step": 2**40, "data": np.float32(3.5)},
    {"kind": "histogram", "name": "normal", "step": 1,
     "data": RANDOM.normal(size=(50, 20)).astype(np.float32)},
    {"kind": "histogram", "name": "few", "step": 1, "data": np.array([1, 2, 5]), "buckets": 4},
    {"kind": "histogram", "name": "equal", "step": 1, "data": np.full([7], 2.5), "buckets": 3},
    {"kind": "histogram", "name": "empty", "step": 1, "data": np.zeros([0, 2]), "buckets": 3},
    {"kind": "histogram", "name": "no buckets", "step": 1, "data": np.ones([2]), "buckets": 0},
    {"kind": "histogram", "name": "one bucket", "step": 1, "data": np.arange(9.0), "buckets": 1},
    {"kind": "image", "name": "floats", "step": 2, "data": RANDOM.normal(0.5, 0.5, (2, 4, 5, 3))},
    {"kind": "image", "name": "greys", "step": 2, "max_outputs": 2, "description": "*g*",
     "data": RANDOM.random((4, 3, 2, 1), dtype=np.float32)},
    {"kind": "image", "name": "bytes", "step": 2,
     "data": RANDOM.integers(0, 256, (1, 6, 7, 4), dtype=np.uint8)},
    {"kind": "text", "name": "note", "step": 3, "data": "**bold** \u20ac", "description": "why"},
    {"kind": "text", "name": "table", "step": 3, "data": [["a", "b"], ["", "d"]]},
]


def write_with_cohort(probe, logdir):
    summaries = [{**record, "data": strings_json(record["data"]) if record["kind"] == "text"
                  else as_json(record["data"])} for record in RECORDS]
    return probe("write_summaries", {"logdir": str(logdir), "summaries": summaries})["path"]


def write_with_tensorflow(logdir):
    writer = tf.summary.create_file_writer(str(logdir))
    with writer.as_default():
        for record in RECORDS:
            options = {"step": record["step"], "description": record.get("description")}
            if record["kind"] == "histogram":
                options["buckets"] = record.get("buckets")
            if "max_outputs" in record:
                options["max_outputs"] = record["max_outputs"]
            getattr(tf.summary, record["kind"])(record["name"], record["data"], **options)
    writer.close()
    return os.path.join(logdir, os.listdir(logdir)[0])


def events_of(path):
    return [tf.compat.v1.Event.FromString(record.numpy()) for record in tf.data.TFRecordDataset(path)]


def test_the_page_of_profiles_reads_a_trace(probe, tmp_path):
    paths = probe("trace_steps", {"logdir": str(tmp_path / "run"), "name": "steps"})["paths"]
    [profile] = [path for path in paths if path.endswith(".xplane.pb")]
    assert os.path.relpath(profile, tmp_path / "run").startswith("plugins/profile/20")
    shown, _ = _pywrap_profiler.xspace_to_tools_data([profile], "trace_viewer")
    trace = trace_events_pb2.Trace.FromString(shown)
    assert [event.name for event in trace.trace_events].count("compute") == 2
    events = event_accumulator.EventAccumulator(str(tmp_path / "run")).Reload()
    [table] = events.Tensors("steps")
    assert table.step == 2 and b"2 steps of" in table.tensor_proto.string_val[0]


@pytest.fixture
def written(probe, tmp_path):
    return (write_with_cohort(probe, tmp_path / "ours"),
            write_with_tensorflow(tmp_path / "theirs"))


def test_events_are_tensorflows(written):
    ours, theirs = [events_of(path) for path in written]
    assert len(ours) == len(theirs) == len(RECORDS) + 1
    assert ours[0].file_version == theirs[0].file_version == "brain.Event:2"
    for own, expected in zip(ours[1:], theirs[1:]):
        assert abs(own.wall_time - expected.wall_time) < 600
        assert own.step == expected.step
        value, reference = own.summary.value[0], expected.summary.value[0]
        assert value.tag == reference.tag
        assert value.metadata == reference.metadata, value.tag
        assert value.tensor.dtype == reference.tensor.dtype
        ours_array, reference_array = tf.make_ndarray(value.tensor), tf.make_ndarray(reference.tensor)
        assert ours_array.shape == reference_array.shape, value.tag
        if reference.metadata.plugin_data.plugin_name == "images":
            np.testing.assert_array_equal(ours_array[:2], reference_array[:2])
            for own_file, file in zip(ours_array[2:], reference_array[2:]):
                np.testing.assert_array_equal(tf.io.decode_png(own_file), tf.io.decode_png(file))
        elif reference.metadata.plugin_data.plugin_name == "histograms":
            np.testing.assert_allclose(ours_array, reference_array, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(ours_array[:, 2], reference_array[:, 2])
        else:
            np.testing.assert_array_equal(ours_array, reference_array)


def test_names_of_files(written):
    ours, theirs = [os.path.basename(path).split(".") for path in written]
    assert ours[:3] == theirs[:3] == ["events", "out", "tfevents"]
    assert len(ours[3]) == len(theirs[3])
    assert ours[-1] == theirs[-1] == "v2"


def test_tensorboard_lists_the_runs(written, tmp_path):
    """As TensorBoard's server reads a directory of runs."""
    multiplexer = plugin_event_multiplexer.EventMultiplexer()
    multiplexer.AddRunsFromDirectory(str(tmp_path))
    multiplexer.Reload()
    provider = MultiplexerDataProvider(multiplexer, str(tmp_path))
    context = RequestContext()
    for plugin, list_data in [(scalar_metadata.PLUGIN_NAME, provider.list_scalars),
                              (histogram_metadata.PLUGIN_NAME, provider.list_tensors),
                              (text_metadata.PLUGIN_NAME, provider.list_tensors),
                              (image_metadata.PLUGIN_NAME, provider.list_blob_sequences)]:
        listed = list_data(context, experiment_id="", plugin_name=plugin)
        kind = {"scalars": "scalar", "histograms": "histogram", "images": "image"}.get(plugin, plugin)
        expected = {record["name"] for record in RECORDS if record["kind"] == kind}
        assert set(listed["ours"]) == set(listed["theirs"]) == expected
        for name in expected:
            assert listed["ours"][name].description == listed["theirs"][name].description
            assert listed["ours"][name].max_step == listed["theirs"][name].max_step


def test_the_accumulator_reads_every_value(written):
    accumulators = [event_accumulator.EventAccumulator(os.path.dirname(path)) for path in written]
    ours, theirs = [accumulator.Reload() for accumulator in accumulators]
    assert ours.Tags()["tensors"] == theirs.Tags()["tensors"]
    assert [event.step for event in ours.Tensors("loss")] == [0, 1, 5]
    for tag in theirs.Tags()["tensors"]:
        assert [event.step for event in ours.Tensors(tag)] == [e.step for e in theirs.Tensors(tag)]
