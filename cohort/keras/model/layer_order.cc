#include "cohort/keras/model/layer_order.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace cohort::internal {
namespace {

using keras::SymbolicStructure;
using keras::SymbolicTensor;
using keras::layers::Layer;
using keras::layers::LayerHandle;

// Dicts by key, as Keras flattens them.
void append_leaves(const SymbolicStructure& tree, std::vector<SymbolicTensor>& leaves) {
  if (tree.spec().is_dict()) {
    std::vector<std::string> keys;
    for (const auto& [key, spec] : tree.spec().items()) keys.push_back(key);
    std::sort(keys.begin(), keys.end());
    for (const std::string& key : keys) append_leaves(tree[key], leaves);
  } else if (tree.is_leaf()) {
    leaves.push_back(tree);
  } else {
    for (size_t i = 0; i < tree.spec().members().size(); ++i) append_leaves(tree[i], leaves);
  }
}

LeafType leaf_type(const TensorSpec& spec) {
  if (spec.is_string()) return cohort::string;
  return spec.dtype();
}

std::vector<SymbolicTensor> sorted_leaves(const SymbolicStructure& tree) {
  std::vector<SymbolicTensor> leaves;
  append_leaves(tree, leaves);
  return leaves;
}

class LayerGraph {
 public:
  LayerGraph(const SymbolicStructure& inputs, const SymbolicStructure& outputs) {
    for (const SymbolicTensor& input : sorted_leaves(inputs)) {
      const bool real = !input.node()->inputs;
      input_layers_.emplace_back(
          key_of(input),
          real ? input.layer()
               : keras::Input(example_shape(input),
                              {.name = input.layer().name(), .dtype = leaf_type(input.spec())})
                     .layer());
    }
    for (const SymbolicTensor& output : sorted_leaves(outputs)) visit(output);
    measure_depths();
  }

  std::vector<LayerHandle> layers() const {
    std::vector<Place> places = places_;
    std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return a.depth != b.depth ? a.depth > b.depth : a.first_met < b.first_met;
    });
    std::vector<LayerHandle> layers;
    for (const Place& place : places) layers.push_back(place.layer);
    return layers;
  }

 private:
  // A tensor that is an input, or (with kCall) a call of a layer.
  using Key = std::pair<const SymbolicNode*, size_t>;
  static constexpr size_t kCall = SIZE_MAX;

  struct Call {
    size_t place = 0;             // of its layer, in places_
    std::vector<size_t> parents;  // calls that make its inputs
    int64_t depth = 0;
  };
  struct Place {
    LayerHandle layer;
    int64_t first_met = 0;
    int64_t depth = 0;
  };

  static Key key_of(const SymbolicTensor& tensor) { return {tensor.node().get(), tensor.index()}; }

  static keras::Shape example_shape(const SymbolicTensor& tensor) {
    const keras::Shape shape = tensor.shape();
    return shape.empty() ? shape : keras::Shape(shape.begin() + 1, shape.end());
  }

  const LayerHandle* input_layer(const Key& key) const {
    for (const auto& [input, layer] : input_layers_) {
      if (input == key) return &layer;
    }
    return nullptr;
  }

  size_t place_of(const LayerHandle& layer) {
    const auto [found, added] = place_by_layer_.emplace(layer.get(), places_.size());
    if (added) places_.push_back({layer, static_cast<int64_t>(places_.size()), 0});
    return found->second;
  }

  // The index in calls_ of what makes `tensor`.
  size_t visit(const SymbolicTensor& tensor) {
    const LayerHandle* input = input_layer(key_of(tensor));
    const Key key = input != nullptr ? key_of(tensor) : Key(tensor.node().get(), kCall);
    if (const auto found = call_by_key_.find(key); found != call_by_key_.end()) {
      return found->second;
    }
    Call call;
    call.place = place_of(input != nullptr ? *input : tensor.layer());
    if (input == nullptr) {
      for (const SymbolicTensor& parent : sorted_leaves(*tensor.node()->inputs)) {
        call.parents.push_back(visit(parent));
      }
    }
    calls_.push_back(std::move(call));
    call_by_key_.emplace(key, calls_.size() - 1);
    return calls_.size() - 1;
  }

  // A layer that is called several times is as deep as its deepest call, and lends its depth to the
  // calls that are looked at later.
  void measure_depths() {
    for (auto call = calls_.rbegin(); call != calls_.rend(); ++call) {
      Place& place = places_[call->place];
      place.depth = std::max(place.depth, call->depth);
      for (const size_t parent : call->parents) {
        calls_[parent].depth = std::max(calls_[parent].depth, place.depth + 1);
      }
    }
    // Inputs that no output needs come first among those of depth 0.
    for (const auto& [key, layer] : input_layers_) {
      const bool needed = place_by_layer_.count(layer.get()) != 0;
      if (!needed) places_[place_of(layer)].first_met = -1;
    }
  }

  std::vector<std::pair<Key, LayerHandle>> input_layers_;
  std::vector<Call> calls_;  // each after its parents
  std::map<Key, size_t> call_by_key_;
  std::vector<Place> places_;  // of the layers, as they are met
  std::unordered_map<const Layer*, size_t> place_by_layer_;
};

}  // namespace

std::vector<LayerHandle> layers_by_depth(const SymbolicStructure& inputs,
                                         const SymbolicStructure& outputs) {
  return LayerGraph(inputs, outputs).layers();
}

}  // namespace cohort::internal
