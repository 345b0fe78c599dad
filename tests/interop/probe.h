// The commands of the interop probe: each takes a JSON request and gives a JSON answer. One file a
// command.
#pragma once

#include <nlohmann/json.hpp>

namespace cohort::interop {

using Json = nlohmann::json;

// Applies an optimizer's formula to one variable, once for each gradient.
// Request: {"optimizer": "SGD"|"Adam"|"RMSprop", "options": {...}, "learning_rate": x,
//           "dtype": "float32"|"float64", "initial": [n numbers], "gradients": [steps][n]}
// Answer: {"values": [steps][n]}, the variable after each step.
Json apply_optimizer(const Json& request);

// Reads an input pipeline to its end.
// Request: {"pipeline": NODE}, where NODE = {"op": name, arguments..., "source"|"sources":
// NODE(s)}. Answer: {"elements": [...], "error": null or the class of the error that ended it}; a
// tensor is
// {"shape": [...], "values": [...]}, a tuple a list.
Json read_pipeline(const Json& request);

// A loss of given labels and predictions, outside of any strategy.
// Request: {"loss": class, "options": {"reduction": ..., ...}, "labels", "predictions": TENSOR,
// "sample_weight": TENSOR or null}. Answer: TENSOR (tensor_json.h).
Json compute_loss(const Json& request);

// nn::compute_average_loss outside of any strategy.
// Request: {"per_example_loss": TENSOR, "sample_weight": TENSOR or null, "global_batch": number or
// null}. Answer: TENSOR.
Json compute_average_loss(const Json& request);

// A metric after some updates, outside of any strategy.
// Request: {"metric": class, "updates": [{"labels", "predictions" (Mean: "values"): TENSOR,
// "sample_weight": TENSOR or null}]}. Answer: TENSOR.
Json compute_metric(const Json& request);

// Trains guide 004's model under a MirroredStrategy of `replicas` CPU devices.
// Request: {"replicas", "global_batch", "steps", "learning_rate", "weights": [TENSOR], "batches":
// [{"images": TENSOR, "labels": TENSOR}]}, the batches are taken in turn. Answer: {"losses":
// [steps]}, summed over the replicas.
Json train_guide_004(const Json& request);

// A model and its optimizer, saved after some training steps or restored, then predicting and
// training one step.
// Request: {"action": "save"|"restore", "model", "optimizer": names, "replicas", "inputs",
// "labels": TENSOR, "steps", "prefix" (save), "path", "built": whether both are built before the
// restore}. Answer: {"path" (save), "iterations" (restore), "predictions", "after_a_step": TENSOR}.
// "model": "partitioned": a tensor in parts of "rows" rows with "values"; answer {"values": TENSOR}.
Json use_checkpoint(const Json& request);

}  // namespace cohort::interop
