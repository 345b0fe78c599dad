#include "cohort/keras/layers/base/serialized_layer.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/layers/base/layer_state.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::internal {
namespace {

using keras::layers::Layer;

// The layers that stand in several places of a model which is being written. A shared layer is
// written once within one model; in models of a model it is written in each of them, and whoever
// reads them must make it once: Keras's shared_object_id.
// Thread safety: none; an object is there for the thread that made it, as long as it lives.
class SharedLayers {
 public:
  explicit SharedLayers(const Layer& model);
  ~SharedLayers();
  SharedLayers(const SharedLayers&) = delete;
  SharedLayers& operator=(const SharedLayers&) = delete;

  // nullptr: the calling thread writes none.
  static const SharedLayers* current();
  // Nullopt for a layer that stands in one place.
  std::optional<int64_t> number_of(const Layer& layer) const;

 private:
  void visit(const Layer& layer);

  // 0 for a layer that was met once by now.
  std::unordered_map<const Layer*, int64_t> numbers_;
  int64_t last_ = 0;
  const SharedLayers* const before_;
};

thread_local const SharedLayers* current_layers = nullptr;

SharedLayers::SharedLayers(const Layer& model) : before_(current_layers) {
  visit(model);
  current_layers = this;
}

SharedLayers::~SharedLayers() { current_layers = before_; }

const SharedLayers* SharedLayers::current() { return current_layers; }

std::optional<int64_t> SharedLayers::number_of(const Layer& layer) const {
  const auto found = numbers_.find(&layer);
  if (found == numbers_.end() || found->second == 0) return std::nullopt;
  return found->second;
}

void SharedLayers::visit(const Layer& layer) {
  const auto [found, is_new] = numbers_.emplace(&layer, 0);
  if (!is_new) {
    if (found->second == 0) found->second = ++last_;
    return;
  }
  for (const Layer::Child& child : layer.children()) visit(*child.layer);
}

// Keras's name of the class.
std::string saved_class_name(const Layer& layer) {
  return input_layer_spec(layer) != nullptr ? "InputLayer" : layer.class_name();
}

// Keras does not write of an InputLayer whether it is trainable, and refuses to read it; of a
// Sequential it neither writes nor reads it.
bool writes_trainable(const Layer& layer) {
  if (input_layer_spec(layer) != nullptr) return false;
  return !layer.trainable() || layer.class_name() != "Sequential";
}

// Models of layers leave the dtype to their layers.
bool writes_dtype(const Layer& layer) {
  return layer.class_name() != "Sequential" && layer.class_name() != "Functional";
}

// Errors: InvalidArgument (there is something else under these names).
void add_what_all_layers_have(const Layer& layer, keras::Config& config) {
  const std::string& name = layer.name();
  const Json given = json_of(config).value("name", Json(nullptr));
  if (!given.is_null() && given != "" && given != name) {
    throw InvalidArgumentError(
        str("its get_config has ", shown_json(given),
            " under \"name\", where a configuration has the name of the layer, ", quoted(name),
            "; use another key"));
  }
  const Json trainable = json_of(config).value("trainable", Json(nullptr));
  if (!trainable.is_null() && !trainable.is_boolean()) {
    throw InvalidArgumentError(
        str("its get_config has ", shown_json(trainable),
            " under \"trainable\", where a configuration has whether the layer "
            "is trainable; use another key"));
  }
  const Json dtype = field_json(layer.dtype_policy());
  const Json dtype_given = json_of(config).value("dtype", Json(nullptr));
  // An InputLayer's or a lookup layer's own "dtype" is not that of its weights.
  const std::string policy = layer.dtype_policy().name();
  const bool is_same = dtype_given.is_null() || dtype_given == dtype || dtype_given == policy;
  if (!is_same && !is_keras_class(saved_class_name(layer))) {
    throw InvalidArgumentError(
        str("its get_config has ", shown_json(dtype_given),
            " under \"dtype\", where a configuration has the dtype of the layer's weights, ",
            quoted(policy), "; use another key"));
  }
  config.set("name", name);
  if (dtype_given.is_null() && writes_dtype(layer)) {
    Json json = json_of(config);
    json["dtype"] = dtype;
    config = ConfigData::config_of(std::move(json));
  }
  if (writes_trainable(layer)) config.set("trainable", layer.trainable());
}

}  // namespace

std::optional<keras::Config> whole_config(const Layer& layer) {
  std::optional<SharedLayers> shared;
  if (SharedLayers::current() == nullptr) shared.emplace(layer);
  try {
    std::optional<keras::Config> config = layer.get_config();
    if (config) add_what_all_layers_have(layer, *config);
    return config;
  } catch (...) {
    rethrow_with_context(layer_place(layer.name(), layer.class_name()));
  }
}

Json serialized_layer(const Layer& layer) {
  const std::optional<keras::Config> config = whole_config(layer);
  if (!config) {
    throw UnimplementedError(
        str(layer_place(layer.name(), layer.class_name()),
            " has no configuration, so that no file can say how it is made; override get_config "
            "and give load_model its class as one of .custom_objects, or save the weights alone "
            "(save_weights)"));
  }
  const std::string class_name = saved_class_name(layer);
  const char* const module = LayerState::of(layer).keras_module();
  Json json = json_of(serialized(module, class_name, json_of(*config)));
  if (!is_keras_class(class_name)) {  // which Keras finds among its custom objects
    json["module"] = nullptr;
    json["registered_name"] = class_name;
  }
  if (const SharedLayers* shared = SharedLayers::current()) {
    if (const auto number = shared->number_of(layer)) json["shared_object_id"] = *number;
  }
  return json;
}

}  // namespace cohort::internal

namespace cohort::keras::layers {

std::optional<Config> LayerHandle::get_config() const { return internal::whole_config(*layer_); }

}  // namespace cohort::keras::layers
