#include <vector>

#include "cohort/cluster/json_document.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/named.h"
#include "cohort/keras/saving/graph_config.h"

namespace cohort::internal {
namespace {

using keras::layers::LayerHandle;

const std::vector<Named<LayerMaker>>& layer_classes() {
  static const std::vector<Named<LayerMaker>> all = {
      {"Activation", {}, read_activation_layer},
      {"Add", {}, read_add},
      {"Average", {}, read_average},
      {"AveragePooling1D", {}, read_average_pooling1d},
      {"AveragePooling2D", {}, read_average_pooling2d},
      {"BatchNormalization", {}, read_batch_normalization},
      {"Bidirectional", {}, read_bidirectional},
      {"Concatenate", {}, read_concatenate},
      {"Conv1D", {}, read_conv1d},
      {"Conv2D", {}, read_conv2d},
      {"Conv2DTranspose", {}, read_conv2d_transpose},
      {"Dense", {}, read_dense},
      {"Dot", {}, read_dot},
      {"Dropout", {}, read_dropout},
      {"ELU", {}, read_elu},
      {"Embedding", {}, read_embedding},
      {"Flatten", {}, read_flatten},
      {"GRU", {}, read_gru},
      {"GlobalAveragePooling1D", {}, read_global_average_pooling1d},
      {"GlobalAveragePooling2D", {}, read_global_average_pooling2d},
      {"GlobalMaxPooling1D", {}, read_global_max_pooling1d},
      {"GlobalMaxPooling2D", {}, read_global_max_pooling2d},
      {"InputLayer", {}, read_input_layer},
      {"IntegerLookup", {}, read_integer_lookup},
      {"LSTM", {}, read_lstm},
      {"LayerNormalization", {}, read_layer_normalization},
      {"LeakyReLU", {}, read_leaky_relu},
      {"Masking", {}, read_masking},
      {"MaxPooling1D", {}, read_max_pooling1d},
      {"MaxPooling2D", {}, read_max_pooling2d},
      {"Maximum", {}, read_maximum},
      {"Minimum", {}, read_minimum},
      {"MultiHeadAttention", {}, read_multi_head_attention},
      {"Multiply", {}, read_multiply},
      {"Normalization", {}, read_normalization},
      {"ReLU", {}, read_relu},
      {"Rescaling", {}, read_rescaling},
      {"Reshape", {}, read_reshape},
      {"SimpleRNN", {}, read_simple_rnn},
      {"Softmax", {}, read_softmax},
      {"StringLookup", {}, read_string_lookup},
      {"Subtract", {}, read_subtract},
      {"TextVectorization", {}, read_text_vectorization},
  };
  return all;
}

bool is_sequential(const std::string& class_name) { return class_name == "Sequential"; }
bool is_functional(const std::string& class_name) {
  return class_name == "Functional" || class_name == "Model";
}

// "layer 'dense' (Dense)" of what can be read, for errors.
std::string place_of(const Json& config, const std::string& class_name) {
  const auto name = config.find("name");
  const bool has_name = name != config.end() && name->is_string();
  return layer_place(has_name ? name->get<std::string>() : "?", class_name);
}

LayerHandle custom_layer(const LayerReader::Custom& make, const Json& config,
                         const std::string& where) {
  try {
    return make(ConfigData::config_of(config));
  } catch (...) {
    rethrow_with_context(where);
  }
}

}  // namespace

std::string layer_place(const std::string& name, const std::string& class_name) {
  return str("layer ", quoted(name), " (", class_name, ")");
}

LayerHandle LayerReader::layer(const Json& json, const std::string& where) const {
  const ClassAndConfig parts = class_and_config(json, where);
  const std::string here = str(where, ": ", place_of(parts.config, parts.class_name));
  if (const auto found = custom_.find(parts.class_name); found != custom_.end()) {
    return custom_layer(found->second, parts.config, here);
  }
  if (is_sequential(parts.class_name)) return sequential(parts.config, here);
  if (is_functional(parts.class_name)) return functional(parts.config, here);
  const auto* found = find_named(layer_classes(), parts.class_name);
  if (found == nullptr) {
    KnownNames known = names_of(layer_classes());
    for (const auto& [name, make] : custom_) {
      known.all.push_back(name);
      known.classes.push_back(name);
    }
    throw_unknown_name("class of layers (of your own ones give .custom_objects)", parts.class_name,
                       known, where);
  }
  return read_fields(parts.config, here, [&](FieldReader& field) {
    LayerHandle made = found->value(field);
    bool trainable = true;
    field("trainable", trainable);
    if (!trainable) made.set_trainable(false);
    return made;
  });
}

keras::ModelHandle LayerReader::model(const Json& json, const std::string& where) const {
  const ClassAndConfig parts = class_and_config(json, where);
  const std::string here = str(where, ": ", parts.class_name);
  if (is_sequential(parts.class_name)) return sequential(parts.config, here);
  if (is_functional(parts.class_name)) return functional(parts.config, here);
  if (const auto found = custom_.find(parts.class_name); found != custom_.end()) {
    const LayerHandle made = custom_layer(found->second, parts.config, here);
    if (auto model = std::dynamic_pointer_cast<keras::Model>(made.pointer())) return model;
    throw InvalidArgumentError(
        str(where, ": the custom object ", quoted(parts.class_name), " is a layer and no model"));
  }
  KnownNames known{{"Sequential", "Functional"}, {"Sequential", "Functional"}};
  for (const auto& [name, make] : custom_) {
    known.all.push_back(name);
    known.classes.push_back(name);
  }
  throw_unknown_name("class of models (of your own ones give .custom_objects)", parts.class_name,
                     known, where);
}

keras::Sequential LayerReader::sequential(const Json& config, const std::string& where) const {
  keras::ModelOptions options;
  if (config.contains("name")) options.name = string_member(config, "name", where);
  const Json& list = member_of(config, "layers", where);
  if (!list.is_array()) throw_wrong_field(list, "a list", str(where, ": 'layers'"));
  std::vector<LayerHandle> layers;
  for (size_t i = 0; i < list.size(); ++i) {
    layers.push_back(layer(list[i], str(where, ": layers[", i, "]")));
  }
  try {
    return keras::Sequential(layers, options);
  } catch (...) {
    rethrow_with_context(where);
  }
}

keras::Functional LayerReader::functional(const Json& config, const std::string& where) const {
  const keras::Functional model = read_functional(
      config, where,
      [this](const Json& json, const std::string& place) { return layer(json, place); });
  if (const auto found = config.find("trainable"); found != config.end() && *found == false) {
    model.set_trainable(false);
  }
  return model;
}

}  // namespace cohort::internal
