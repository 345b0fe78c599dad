// The handle through which programs use a layer: copies name the same layer, as in Python.
//
//   LayerHandle dense = layers::Dense(10);
//   Tensor y = dense(x);                                // a tensor now
//   SymbolicTensor units = dense(keras::Input({4}));    // a step of a functional model
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::keras {

class SymbolicTensor;
class SymbolicStructure;

namespace layers {

// Thread safety: as Layer.
class COHORT_API LayerHandle {
 public:
  // For a layer class of your own: std::make_shared<MyLayer>().
  // Errors: InvalidArgument (nullptr).
  template <class T>
  requires std::is_base_of_v<Layer, T> LayerHandle(std::shared_ptr<T> layer)
      : LayerHandle(std::shared_ptr<Layer>(std::move(layer))) {}
  LayerHandle(std::shared_ptr<Layer> layer);
  // Does not compile, and says what to give instead.
  template <class T>
  requires std::is_base_of_v<Layer, std::remove_cvref_t<T>> LayerHandle(T&&)
      : LayerHandle(std::shared_ptr<Layer>()) {
    static_assert(!std::is_base_of_v<Layer, std::remove_cvref_t<T>>,
                  "a layer or model class of your own stays where it was made, so that handles can "
                  "share it: give std::make_shared<YourLayer>(...)");
  }

  // See Layer.
  Structure operator()(const Structure& inputs, const CallOptions& options = {}) const {
    return (*layer_)(inputs, options);
  }
  Tensor operator()(const Tensor& input, const CallOptions& options = {}) const {
    return (*layer_)(input, options);
  }
  // Builds the layer for inputs of these specs and returns symbols for its outputs.
  // Errors: InvalidArgument (as Layer; outputs that are not tensors; a mask, which a tensor has).
  SymbolicTensor operator()(const SymbolicTensor& input, const CallOptions& options = {}) const;
  SymbolicStructure operator()(const SymbolicStructure& inputs,
                               const CallOptions& options = {}) const;

  const std::string& name() const { return layer_->name(); }
  const std::string& class_name() const { return layer_->class_name(); }
  DType dtype() const { return layer_->dtype(); }
  DType compute_dtype() const { return layer_->compute_dtype(); }
  DType variable_dtype() const { return layer_->variable_dtype(); }
  const mixed_precision::Policy& dtype_policy() const { return layer_->dtype_policy(); }
  bool built() const { return layer_->built(); }
  bool trainable() const { return layer_->trainable(); }
  void set_trainable(bool trainable) const { layer_->set_trainable(trainable); }
  List<Variable> trainable_variables() const { return layer_->trainable_variables(); }
  List<Variable> non_trainable_variables() const { return layer_->non_trainable_variables(); }
  List<Variable> variables() const { return layer_->variables(); }
  List<Variable> weights() const { return layer_->weights(); }
  int64_t count_params() const { return layer_->count_params(); }
  List<Tensor> get_weights() const { return layer_->get_weights(); }
  void set_weights(const std::vector<Tensor>& values) const { layer_->set_weights(values); }
  List<Tensor> losses() const { return layer_->losses(); }
  void reset_states() const { layer_->reset_states(); }
  // The layer's get_config, and under "name", "trainable" and "dtype" what every layer has.
  // Errors: InvalidArgument (the layer has something else there), those of the layer's; they name
  // it.
  std::optional<Config> get_config() const;

  Layer* get() const { return layer_.get(); }
  Layer* operator->() const { return layer_.get(); }
  const std::shared_ptr<Layer>& pointer() const { return layer_.pointer(); }
  // For a train::Checkpoint.
  std::shared_ptr<train::Trackable> trackable() const { return layer_.pointer(); }
  // Whether both are handles of the same layer.
  bool operator==(const LayerHandle& other) const { return layer_ == other.layer_; }

 protected:
  // The layer gets its name only when the name is first requested.
  struct Unnamed {};
  LayerHandle(Unnamed, std::shared_ptr<Layer> layer) : layer_(std::move(layer)) {}

 private:
  internal::Handle<Layer, "handle of a layer or model"> layer_;
};

}  // namespace layers
}  // namespace cohort::keras
