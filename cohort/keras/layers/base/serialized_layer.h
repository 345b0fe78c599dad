// Layers as configurations with what every layer has, as files hold them. For sources only: it
// includes nlohmann-json.
#pragma once

#include <optional>

#include "cohort/keras/base/config_json.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::internal {

// The layer's get_config with its name, whether it is trainable, and its dtype; nullopt if it has
// none.
// Errors (all name the layer): InvalidArgument (the layer has something else under "name",
// "trainable" or "dtype"), those of get_config.
std::optional<keras::Config> whole_config(const keras::layers::Layer& layer);
// A layer with its class: {"module": .., "class_name": .., "config": ..}.
// Errors: also Unimplemented (the layer has no configuration).
Json serialized_layer(const keras::layers::Layer& layer);

}  // namespace cohort::internal
