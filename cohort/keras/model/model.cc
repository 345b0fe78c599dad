#include "cohort/keras/model/model.h"

#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort {
namespace internal {

std::vector<train::TrackableChild> number_layers(const std::vector<keras::layers::Layer*>& layers) {
  std::vector<train::TrackableChild> names;
  size_t with_weights = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (has_weights(*layers[i])) {
      names.push_back({str("layer_with_weights-", with_weights++), layers[i]});
    }
    names.push_back({str("layer-", i), layers[i]});
  }
  return names;
}

}  // namespace internal

namespace keras {

using internal::str;

List<Variable> Model::variables() const {
  List<Variable>::Base found;
  internal::Visited visited;
  const auto add = [&](const Variable& variable) {
    if (visited.insert(&variable.impl())) found.push_back(variable);
  };
  for (const Child& child : children()) {
    for (const Variable& variable : child.layer->variables()) add(variable);
  }
  for (const bool trainable : {true, false}) {
    for (const internal::LayerState::Weight& own : internal::LayerState::of(*this).weights) {
      if (own.variable.trainable() == trainable) add(own.variable);
    }
  }
  return internal::LayerState::of(*this).listed(std::move(found));
}

std::string Model::explain() const {
  return str("the call of model '", name(), "' says how its layers run: each by itself\n");
}

List<std::string> ModelHandle::layer_names() const {
  List<std::string> names;
  for (const layers::Layer::Child& child : get()->children()) names.push_back(child.layer->name());
  return names;
}

List<layers::Layer*> ModelHandle::layers() const {
  List<layers::Layer*> all;
  for (const layers::Layer::Child& child : get()->children()) all.push_back(child.layer);
  return all;
}

layers::Layer& ModelHandle::get_layer(std::string_view name) const {
  for (const layers::Layer::Child& child : get()->children()) {
    if (child.layer->name() == name) return *child.layer;
  }
  std::string known;
  for (const std::string& candidate : layer_names()) {
    known += str(known.empty() ? "" : ", ", candidate);
  }
  throw NotFoundError(str("model '", this->name(), "' has no layer ", internal::quoted(name),
                          "; its layers are: ", known));
}

layers::Layer& ModelHandle::get_layer(size_t index) const {
  const List<layers::Layer::Child>& children = get()->children();
  if (index >= children.size()) {
    throw OutOfRangeError(
        str("layer ", index, " of model '", name(), "', which has ", children.size()));
  }
  return *children[index].layer;
}

}  // namespace keras
}  // namespace cohort
