// Models as configurations: Keras's form of Sequential and functional models, both ways. For sources
// only: it includes nlohmann-json.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/keras/base/named.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/model/functional.h"

namespace cohort::internal {

// Its get_config with what every layer has: its name, whether it is trainable, and its dtype. Nothing: it has
// none. Errors (all name the layer): InvalidArgument (it has something else under "name", "trainable" or
// "dtype"), those of get_config.
std::optional<keras::Config> whole_config(const keras::layers::Layer& layer);
// What a layer writes of itself with its class: {"module": .., "class_name": .., "config": ..}.
// Errors: also Unimplemented (it has no configuration).
Json serialized_layer(const keras::layers::Layer& layer);

// input: what the model was made or first called with, if that is one leaf.
keras::Config sequential_config(const keras::Model& model, const keras::layers::Layer* input_layer,
                                const std::optional<TensorSpec>& input);
// `layers` in the model's order, with those of the inputs.
keras::Config functional_config(const keras::Model& model, const keras::SymbolicStructure& inputs,
                                const keras::SymbolicStructure& outputs,
                                const std::vector<keras::layers::LayerHandle>& layers);

// Whether Keras has a layer or model of this name, which is no class of the program.
bool is_keras_class(std::string_view class_name);

// Makes layers and models of what they wrote. Thread safety: none.
class LayerReader {
 public:
  using Custom = std::function<keras::layers::LayerHandle(const keras::Config&)>;

  // Classes of the program; they come before Keras's.
  explicit LayerReader(std::map<std::string, Custom> custom) : custom_(std::move(custom)) {}

  // Errors: InvalidArgument (`where`: damaged, an unknown class with the nearest known name),
  // Unimplemented (what Cohort does not have; names the layer and the option).
  // What stands in several places is made once.
  keras::layers::LayerHandle layer(const Json& json, const std::string& where);
  // Errors: also InvalidArgument (no model's class).
  keras::ModelHandle model(const Json& json, const std::string& where);

 private:
  // Errors begin with `here`; that of an unknown class with `where`.
  keras::layers::LayerHandle make(const ClassAndConfig& parts, const std::string& here,
                                  const std::string& where);
  bool is_custom(const std::string& class_name) const { return custom_.count(class_name) > 0; }
  keras::Sequential sequential(const Json& config, const std::string& where);
  keras::Functional functional(const Json& config, const std::string& where);
  KnownNames with_custom(KnownNames known) const;

  std::map<std::string, Custom> custom_;
  std::map<int64_t, keras::layers::LayerHandle> shared_;  // by shared_object_id
};

// How many nodes of a nested model Keras does not write: one where it has an Input of its own.
size_t hidden_nodes(const Json& serialized_layer);

// The calls of layers in a functional model's configuration: keras.engine.functional's from_config.
// `layer_of` makes the layers. Errors: InvalidArgument, Unimplemented.
keras::Functional read_functional(
    const Json& config, const std::string& where,
    const std::function<keras::layers::LayerHandle(const Json&, const std::string&)>& layer_of);

}  // namespace cohort::internal
