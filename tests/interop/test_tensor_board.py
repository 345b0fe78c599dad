"""What the TensorBoard callback writes, as TensorBoard's own readers and pages see it."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.profiler.internal import _pywrap_profiler
from tensorflow.tsl.profiler.protobuf import trace_events_pb2
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.graph import keras_util
from tensorboard.util import tensor_util

EPOCHS = 2
STEPS = 10  # of an epoch: 480 examples in batches of 50


@pytest.fixture(scope="module")
def run(probe, tmp_path_factory):
    log_dir = tmp_path_factory.mktemp("board")
    history = probe("fit_with_tensor_board", {"log_dir": str(log_dir), "epochs": EPOCHS})
    return log_dir, history


def reader(directory):
    events = event_accumulator.EventAccumulator(str(directory), size_guidance={"tensors": 0})
    events.Reload()
    return events


def scalars(events, tag):
    return {event.step: float(tensor_util.make_ndarray(event.tensor_proto))
            for event in events.Tensors(tag)}


def test_scalars_are_those_of_the_history(run):
    log_dir, history = run
    train, validation = reader(log_dir / "train"), reader(log_dir / "validation")
    np.testing.assert_allclose(list(scalars(train, "epoch_loss").values()), history["loss"], 1e-6)
    np.testing.assert_allclose(list(scalars(validation, "epoch_accuracy").values()),
                               history["val_accuracy"], 1e-6)
    assert list(scalars(train, "batch_loss")) == list(range(1, EPOCHS * STEPS + 1))
    for tag in ("epoch_steps_per_second", "batch_steps_per_second", "epoch_learning_rate"):
        assert all(value > 0 for value in scalars(train, tag).values())


def test_histograms_of_every_weight(run):
    events = reader(run[0] / "train")
    tags = events.PluginTagToContent("histograms")
    assert sum("kernel" in tag for tag in tags) == 2 and sum("bias" in tag for tag in tags) == 2
    for tag in tags:
        assert [event.step for event in events.Tensors(tag)] == list(range(EPOCHS))


def test_the_graph_is_drawn_and_is_kerass_model(run):
    events = reader(run[0] / "train")
    assert events.PluginTagToContent("graph_keras_model") == {"keras": b"1"}
    config = json.loads(events.Tensors("keras")[0].tensor_proto.string_val[0])
    graph = keras_util.keras_model_to_graph_def(config)
    operations = {node.attr["keras_class"].s.decode() for node in graph.node}
    assert {"Rescaling", "Conv2D", "MaxPooling2D", "Flatten", "Dense"} <= operations
    # What the page of graphs shows at first.
    shown = {node.name: node for node in events.Graph().node}
    assert {node.op for node in shown.values()} == operations
    assert all(name in shown for node in shown.values() for name in node.input)
    model = tf.keras.models.model_from_json(json.dumps(config))
    assert model.output_shape == (None, 10)


def test_texts_and_the_trace(run):
    log_dir, _ = run
    events = reader(log_dir / "train")
    summary = events.Tensors("model")[0].tensor_proto.string_val[0].decode()
    assert "conv2d (Conv2D)" in summary and "Total params" in summary
    assert "compute" in events.Tensors("profile")[0].tensor_proto.string_val[0].decode()
    [trace] = (log_dir / "train" / "plugins" / "profile" / "steps-3-5").glob("*.trace.json")
    trace = json.loads(trace.read_text())
    assert {"compute", "update"} <= {event["name"] for event in trace["traceEvents"]}
    # What the page of profiles reads.
    [profile] = (log_dir / "train" / "plugins" / "profile" / "steps-3-5").glob("*.xplane.pb")
    shown, _ = _pywrap_profiler.xspace_to_tools_data([str(profile)], "trace_viewer")
    trace = trace_events_pb2.Trace.FromString(shown)
    assert {"compute", "update"} <= {event.name for event in trace.trace_events}
