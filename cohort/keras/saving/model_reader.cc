#include "cohort/keras/saving/model_reader.h"

#include <memory>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/named.h"

namespace cohort::internal {

using keras::layers::LayerHandle;

namespace {

bool is_sequential(const std::string& class_name) { return class_name == "Sequential"; }
bool is_functional(const std::string& class_name) {
  return class_name == "Functional" || class_name == "Model";
}

}  // namespace

keras::ModelHandle ModelReader::model(const Json& json, const std::string& where) {
  const ClassAndConfig parts = class_and_config(json, where);
  const std::string& class_name = parts.class_name;
  if (!is_custom(class_name) && !is_sequential(class_name) && !is_functional(class_name)) {
    throw_unknown_name("class of models (of your own ones give .custom_objects)", class_name,
                       with_custom({{"Sequential", "Functional"}, {"Sequential", "Functional"}}),
                       where);
  }
  const LayerHandle made = make(parts, str(where, ": ", class_name), where);
  if (auto model = std::dynamic_pointer_cast<keras::Model>(made.pointer())) return model;
  throw InvalidArgumentError(
      str(where, ": the custom object ", quoted(class_name), " is a layer and no model"));
}

std::optional<LayerHandle> ModelReader::read_model(const ClassAndConfig& parts,
                                                   const std::string& here) {
  if (is_sequential(parts.class_name)) return sequential(parts.config, here);
  if (is_functional(parts.class_name)) return functional(parts.config, here);
  return std::nullopt;
}

keras::Sequential ModelReader::sequential(const Json& config, const std::string& where) {
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

keras::Functional ModelReader::functional(const Json& config, const std::string& where) {
  return read_functional(config, where, [this](const Json& json, const std::string& place) {
    return layer(json, place);
  });
}

}  // namespace cohort::internal
