// Models: layers that are made of layers.
//
//   class Regression : public keras::Model {
//    public:
//     Regression() { track("hidden", hidden_); track("output", output_); }
//     Tensor call(const Tensor& x, const CallOptions&) override { return output_(hidden_(x)); }
//    private:
//     keras::layers::LayerHandle hidden_ = keras::layers::Dense(64, {.activation = "relu"});
//     keras::layers::LayerHandle output_ = keras::layers::Dense(1);
//   };
//   keras::ModelHandle model = std::make_shared<Regression>();
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer_handle.h"

namespace cohort {
namespace keras {

// The base class of models. Thread safety: as Layer.
class COHORT_API Model : public layers::Layer {
 public:
  explicit Model(layers::LayerOptions options = {}) : Layer(std::move(options)) {}

  // A table of the layers with output shapes and numbers of parameters, as Keras prints it.
  // Errors: FailedPrecondition (not built yet: call it first, or give it an Input).
  std::string summary() const;

 protected:
  Model(std::string class_name, layers::LayerOptions options)
      : Layer(std::move(class_name), std::move(options)) {}
};

// The handle through which programs use a model; copies name the same model.
// Thread safety: as Layer.
class COHORT_API ModelHandle : public layers::LayerHandle {
 public:
  // Errors: InvalidArgument (nullptr).
  template <class T>
  requires std::is_base_of_v<Model, T> ModelHandle(std::shared_ptr<T> model)
      : LayerHandle(std::move(model)) {}

  // Layers in the order of the model; errors name the existing ones.
  std::vector<std::string> layer_names() const;
  // The layer as a reference: a model's member cannot be shared.
  // Errors: NotFound (names those there are); OutOfRange.
  layers::Layer& get_layer(std::string_view name) const;
  layers::Layer& get_layer(size_t index) const;

  std::string summary() const { return static_cast<const Model*>(get())->summary(); }

 protected:
  ModelHandle(Unnamed unnamed, std::shared_ptr<Model> model)
      : LayerHandle(unnamed, std::move(model)) {}
};

}  // namespace keras

namespace internal {
// The names of a model's layers in checkpoints, as Keras gives them: "layer-0", "layer-1", ...; the
// k-th layer with weights is also "layer_with_weights-k". A layer counts if its weights exist by
// now, or if it has learned a vocabulary.
std::vector<train::TrackableChild> number_layers(const std::vector<keras::layers::Layer*>& layers);
}  // namespace internal
}  // namespace cohort
