// The layers of a model as a graph of TensorFlow's, for TensorBoard.
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal {

// A GraphDef (tensorflow/core/framework/graph.proto) of `json`, what ModelHandle::to_json gives: a
// node for each layer, "model/dense", whose operation is the layer's class. Nested models are name
// scopes.
// Errors: InvalidArgument (no model's JSON).
std::string layer_graph(std::string_view json);

}  // namespace cohort::internal
