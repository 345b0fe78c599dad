#include "cohort/keras/layers/base/layer_handle.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::keras::layers {

using internal::str;

LayerHandle::LayerHandle(std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {
  if (layer_.empty()) throw InvalidArgumentError("a layer handle was made of nullptr");
  layer_->name();  // names are numbered in the order in which layers are made
}

void Layer::track(std::string name, const LayerHandle& layer) {
  state_->track_child({std::move(name), layer.get(), layer.pointer()});
}

void Layer::track(const std::string& name, const std::vector<LayerHandle>& layers) {
  state_->check_name_is_free(name);
  train::TrackableList& list =
      *state_->lists.emplace_back(std::make_unique<train::TrackableList>());
  state_->named_children.push_back({name, &list});
  for (const LayerHandle& layer : layers) {
    state_->children.push_back({str(name, "/", list.size()), layer.get(), layer.pointer()});
    state_->adopt(*layer.get());
    list.add(*layer.get());
  }
  child_appeared(name, list);
}

}  // namespace cohort::keras::layers
