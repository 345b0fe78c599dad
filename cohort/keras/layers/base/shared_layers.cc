#include "cohort/keras/layers/base/shared_layers.h"

namespace cohort::internal {
namespace {

thread_local const SharedLayers* current_layers = nullptr;

}  // namespace

SharedLayers::SharedLayers(const keras::layers::Layer& model) : before_(current_layers) {
  visit(model);
  current_layers = this;
}

SharedLayers::~SharedLayers() { current_layers = before_; }

const SharedLayers* SharedLayers::current() { return current_layers; }

std::optional<int64_t> SharedLayers::number_of(const keras::layers::Layer& layer) const {
  const auto found = numbers_.find(&layer);
  if (found == numbers_.end() || found->second == 0) return std::nullopt;
  return found->second;
}

void SharedLayers::visit(const keras::layers::Layer& layer) {
  const auto [found, is_new] = numbers_.emplace(&layer, 0);
  if (!is_new) {
    if (found->second == 0) found->second = ++last_;
    return;
  }
  for (const keras::layers::Layer::Child& child : layer.children()) visit(*child.layer);
}

}  // namespace cohort::internal
