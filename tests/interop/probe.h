// The commands of the interop probe: each takes a JSON request and gives a JSON answer. One file a
// command.
#pragma once

#include <nlohmann/json.hpp>

namespace cohort::interop {

using Json = nlohmann::json;

// Applies an optimizer to variables, once for each list of gradients, outside of any strategy.
// Request: {"optimizer": class, "options": (optimizer_json.h), "initial": [TENSOR], "excluded":
// numbers of variables without weight decay (may be missing), "gradients": [steps][TENSOR or {"ids",
// "rows": TENSOR}]}. Answer: {"values": [steps][TENSOR]}, the variables after each step.
Json apply_optimizer(const Json& request);

// An ExponentialMovingAverage of variables that are set to new values at each step.
// Request: {"decay": number, "num_updates": bool (whether the steps are counted), "initial":
// [TENSOR], "steps": [steps][TENSOR], "load", "save": checkpoints of "averages", a list (may be
// missing)}. Answer: {"averages": [steps][TENSOR], "names": [text]}.
Json average_variables(const Json& request);

// A traced program's file for TensorBoard's page of profiles. Request: {"logdir", "name"}. Answer:
// {"paths": [those of all files below it]}.
Json trace_steps(const Json& request);

// A LossScaleOptimizer that minimizes the sum of a variable times the slopes of each step.
// Request: {"optimizer": class, "options", "initial_scale", "growth_steps", "initial": TENSOR,
// "slopes": [steps][TENSOR], "load", "save": checkpoints of "optimizer" and "w" (may be missing)}.
// Answer: {"steps": [{"value": TENSOR, "scale", "counter", "iterations", "skipped": numbers}]}.
Json scale_losses(const Json& request);

// A learning rate schedule. Request: {"learning_rate": (optimizer_json.h), "iterations": [n]}.
// Answer: {"rates": [n]}.
Json compute_learning_rates(const Json& request);

// Reads an input pipeline to its end.
// Request: {"pipeline": NODE}, where NODE = {"op": name, arguments..., "source"|"sources":
// NODE(s)}. Answer: {"elements": [...], "error": null or the class of the error that ended it}; a
// tensor is
// {"shape": [...], "values": [...]}, a tuple a list.
Json read_pipeline(const Json& request);

// Reads a pipeline of global batches, distributed over `workers` input workers of this process.
// Request: {"pipeline": NODE, "policy": "AUTO", ..., "workers", "replicas_per_worker"}. Answer:
// {"steps": [[a piece for each replica, as elements above]], "error": as above}.
Json read_distributed(const Json& request);

// data::batch_sizes_for_worker for each worker.
// Request: {"global_batch_size", "workers", "replicas_per_worker"}. Answer: {"sizes": [workers][]}.
Json divide_batch(const Json& request);

// An operation of cohort::image or cohort::io (probe_images.cc has their names).
// Request: {"op": name, "inputs": [TENSOR], "options": {by name}, "contents": hex}, of which some may be
// missing. Answer: TENSOR, {"contents": hex}, {"value"} or {"error": class, "text"}.
Json use_images(const Json& request);

// A lookup layer: its vocabulary and what it makes of inputs.
// Request: {"layer": "StringLookup"|"IntegerLookup", "options": {the layer's by name; "vocabulary"
// or "file"}, "adapt": INPUT (may be missing), "inputs": [INPUT]}, where INPUT is a TENSOR whose
// dtype may be "string". Answer: {"vocabulary", "tokens" (without the special ones), "size",
// "outputs": [INPUT or {"error"}]} or {"error"}.
Json look_up(const Json& request);

// A preprocessing layer, of categories or images, of Keras's configuration.
// Request: {"layer": class, "config": {its get_config}, "adapt": {"data": TENSOR, "batch": rows at a
// time}, "load", "save": checkpoints of "layer", "training" (these may be missing), "inputs": [TENSOR, RAGGED, or
// a list of them]}. Answer: {"config", "boundaries" (of a Discretization), "outputs": [TENSOR, RAGGED
// or {"error"}]} or {"error"}.
Json preprocess(const Json& request);

// A layer of sequences of Keras's configuration, from given weights. Request: {"layer": class,
// "config": {its get_config, or with options that Keras has in the call}, "inputs": STRUCTURE,
// "masks": [TENSOR or null, for each tensor of it], "earlier": [STRUCTURE, of batches before] (both may
// be missing), "weights": [TENSOR], "training": bool}. Answer: {"config", "outputs": [TENSOR], "masks":
// [TENSOR or null], "gradients", of a weighted sum of the outputs by the inputs and the trainable
// weights, "weights": [TENSOR]} or {"error", "text"}.
Json run_sequence_layer(const Json& request);

// A loss of given labels and predictions, outside of any strategy.
// Request: {"loss": class, "options": {"reduction": ..., ...}, "labels", "predictions": TENSOR,
// "sample_weight": TENSOR or null}. Answer: TENSOR (tensor_json.h) with a "gradient", that of its
// sum by the predictions.
Json compute_loss(const Json& request);

// A layer of given weights: its output, the gradients of a weighted sum of it by the inputs and the
// trainable weights, and the weights afterwards.
// Request: {"layer": class, "options", "inputs", "weights": [TENSOR], "training": bool}. Answer:
// {"output": TENSOR, "gradients", "weights": [TENSOR]}.
Json run_layer(const Json& request);

// The same for a layer of Keras's configuration (layer_from_config). Request: {"layer": class,
// "config": {its get_config}, "input": TENSOR, "weights": [TENSOR], "training": bool, which may be
// missing}. Answer: {"config", "output": TENSOR, "gradients": [TENSOR]} or {"error", "text"}.
Json run_keras_layer(const Json& request);

// What a constraint of Keras's form makes of a value. Request: {"constraint", "value": TENSOR}.
// Answer: {"config", "value": TENSOR} or {"error", "text"}.
Json constrain(const Json& request);

// A Normalization layer after it has adapted. Request: {"axis": [n], "invert", "batch_size",
// "data": TENSOR}. Answer: {"weights": [TENSOR], "output": TENSOR}, of the data.
Json adapt_normalization(const Json& request);

// A whole model of a directory (keras::models::load_model). Request: {"path", "inputs": TENSOR or a
// list or an object of them, "labels", "steps" (of training; both may be missing), "save": a
// directory (may be missing)}. Answer: {"outputs": [TENSOR], of the model before it is trained,
// "losses": [steps]}.
Json use_model(const Json& request);

// A compiled model (models::model_from_json) whose weights and optimizer come from a file of
// save_weights, and go into another after some steps. Request: {"json": text, "optimizer":
// {"class", "options"}, "inputs": TENSOR, "labels": TENSOR, "load": path, "steps": number, "save":
// path}. Answer: {"loaded": iterations, "losses": [number]}.
Json use_weights(const Json& request);

// A small classifier's fit, with everything that the TensorBoard callback writes. Request:
// {"log_dir", "epochs"}. Answer: {"loss": [epochs], "val_accuracy": [epochs]}.
Json fit_with_tensor_board(const Json& request);

// A function of nn:: or random:: (probe_nn.cc), and the gradients of its first output. Request:
// {"function", "inputs": [TENSOR or null], "options": {...}, "cotangent": TENSOR (may be missing)}.
// Answer: {"outputs": [TENSOR], "gradients": [TENSOR or null for each input]}, or {"error", "text"}.
Json call_nn(const Json& request);

// nn::compute_average_loss outside of any strategy.
// Request: {"per_example_loss": TENSOR, "sample_weight": TENSOR or null, "global_batch": number or
// null}. Answer: TENSOR.
Json compute_average_loss(const Json& request);

// A metric after some updates, outside of any strategy. Request: {"metric": class, "options": {...}
// (may be missing), "updates": [{"labels", "predictions" (Mean, Sum: "values"): TENSOR,
// "sample_weight": TENSOR or null}]}. Answer: TENSOR.
Json compute_metric(const Json& request);

// Strategy::reduce, or all_reduce in a step.
// Request: {"op": "SUM"|"MEAN", "dtype", "values": [a TENSOR for each replica], "axis": number or
// null, "in_step": bool}. Answer: TENSOR or {"error": class}.
Json reduce_values(const Json& request);

// Trains guide 004's model under a MirroredStrategy of `replicas` CPU devices.
// Request: {"replicas", "global_batch", "steps", "learning_rate", "weights": [TENSOR], "batches":
// [{"images": TENSOR, "labels": TENSOR}]}, the batches are taken in turn. Answer: {"losses":
// [steps]}, summed over the replicas.
Json train_guide_004(const Json& request);

// Trains a model of examples/models without dropout, on rows that it makes itself. Request: {"model":
// name, "batches": how many different ones, "rows": of each, "steps", "floatx"}. Answer: {"weights":
// [TENSOR], at the beginning, "batches": [{"inputs": TENSOR or {name: TENSOR}, "labels", "weights": TENSOR or
// null}], "learning_rate", "losses": [steps]}, the batches are taken in turn.
Json train_example(const Json& request);

// A model and its optimizer, saved after some training steps or restored, then predicting and
// training one step. Request: {"action": "save"|"restore", "model": name, "optimizer": {"class",
// "options" (optimizer_json.h)}, "replicas", "inputs", "labels": TENSOR, "steps", "prefix" (save),
// "path", "built": whether both are built before the restore, "partly": whether values may be left
// over (may be missing)}. Answer: {"path" (save), "iterations" (restore), "predictions",
// "after_a_step": TENSOR}. "model": "partitioned": a tensor in parts of "rows" rows with "values";
// answer {"values": TENSOR}.
Json use_checkpoint(const Json& request);

// Writes a TFRecord file.
// Request: {"path", "records": [hex], "compression": "", "GZIP" or "ZLIB"}. Answer: {}.
Json write_records(const Json& request);

// Reads files of records to the end or the first error.
// Request: {"kind": "tfrecord"|"lines"|"csv"|"list", "paths", "compression", "num_parallel_reads",
// of CSV "columns": [{"dtype", "default" (may be missing)}] and its options by name}. Answer:
// {"elements": [TENSOR or list of TENSORs], "error": null or class, "text"}, where a TENSOR of
// strings has dtype "bytes" and hex values.
Json read_records(const Json& request);

// io::ExampleBuilder. Request: {"examples": [{name: {"dtype", "values" (of bytes: hex)}}]}.
// Answer: {"examples": [hex]}.
Json build_examples(const Json& request);

// io::parse_example of a batch. Request: {"examples": [hex], "features": {name: {"dtype",
// "shape" (fixed length only), "default": TENSOR (may be missing)}}}. Answer: {"parsed", "error"}.
Json parse_examples(const Json& request);

// io::parse_example, io::parse_sequence_example or parse_single_sequence_example. Request:
// {"records": [hex], "single": bool, "features" or "context" and "sequences": {name: {"kind":
// "fixed"|"sequence"|"var_len"|"ragged"|"sparse", "dtype", ...}}}. Answer: {"parsed", "error"}, where
// a RaggedTensor is {"ragged": TENSOR, "splits": [TENSOR]}, a sparse one {"sparse": TENSOR,
// "indices": TENSOR, "dense_shape"}.
Json parse_records(const Json& request);

// io::SequenceExampleBuilder. Request: {"examples": [{"context": {name: [n]}, "lists": {name:
// [steps][n]}}]}. Answer: {"examples": [hex]}.
Json build_sequence_examples(const Json& request);

// Dataset::sparse_batch. Request: {"rows": [TENSOR], "batch_size", "row_shape"}. Answer as
// parse_records.
Json batch_sequences(const Json& request);

// make_batched_features_dataset, unshuffled. Request: {"path", "batch_size", "features"}. Answer as
// parse_records.
Json batch_features(const Json& request);

// Dataset::sample_from_datasets with a dataset of weights. Request: {"ranges": [[start, stop]],
// "weights": TENSOR [draws, datasets], "stop": bool}. Answer: {"parsed": [n]}.
Json sample_by_weights(const Json& request);

// keras::utils::text_dataset_from_directory. Request: {"directory", its options by name}. Answer:
// a list of {"class_names", "file_paths", "elements"}, two for the subset "both".
Json read_text_directory(const Json& request);

// keras::utils::image_dataset_from_directory. Request and answer likewise.
Json read_image_directory(const Json& request);

// keras::utils::timeseries_dataset_from_array. Request: {"data": TENSOR, "targets": TENSOR (may be
// missing), "sequence_length", its options by name}. Answer: {"elements"}.
Json read_timeseries(const Json& request);

// keras::utils::pad_sequences. Request: {"sequences": [TENSOR], its options by name}. Answer: TENSOR.
Json pad(const Json& request);

// Writes an event file. Request: {"logdir", "summaries": [{"kind": "scalar"|"histogram"|"text",
// "name", "step", "data": TENSOR (of text: strings), "description", "buckets" (may be missing)}]}.
// Answer: {"path"}.
Json write_summaries(const Json& request);

// Analyzes columns by a preprocessing function of transform/cases.cc, then applies it to them.
// Request: {"function", "columns": {name: COLUMN (transform/column_json.h)}, "batch": rows,
// "vocabularies": names of those to look up, "directory"}. Answer: {"transformed": {name: COLUMN},
// "statistics": {name: COLUMN of one row}, "vocabularies": {name: {"file", "size"}}} or {"refused": text}.
Json transform_columns(const Json& request);

// A cluster as Prometheus reads it. Request: {"generation", "members": [{"job", "index", "alive",
// "state_seconds", "silence_seconds": number or null, "figures": {name: text of a number}}],
// "stale_refused": number or null}. Answer: {"text"}.
Json prometheus_text(const Json& request);

}  // namespace cohort::interop
