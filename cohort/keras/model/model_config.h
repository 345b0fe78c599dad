// Models as configurations, in Keras's form of Sequential and functional models. For sources only:
// it includes nlohmann-json.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cohort/keras/base/config_json.h"
#include "cohort/keras/layers/base/symbolic.h"
#include "cohort/keras/model/model.h"

namespace cohort::internal {

// `input` is what the model was first called with, if that was one leaf.
keras::Config sequential_config(const keras::Model& model, const keras::layers::Layer* input_layer,
                                const std::optional<TensorSpec>& input);
// `layers` are in the model's order and include those of the inputs.
keras::Config functional_config(const keras::Model& model, const keras::SymbolicStructure& inputs,
                                const keras::SymbolicStructure& outputs,
                                const std::vector<keras::layers::LayerHandle>& layers);

// The names under which Keras's layers of this class take the inputs after the first; none: they
// take all in one.
const std::vector<std::string>& named_inputs(const std::string& class_name);

// The options of Cohort's layers of this class that are arguments of the call of Keras's: true or
// false, and false where nobody says.
const std::vector<std::string>& options_of_calls(const std::string& class_name);

// How many nodes of a nested model Keras does not write: one where it has an Input of its own.
size_t hidden_nodes(const Json& serialized_layer);

}  // namespace cohort::internal
