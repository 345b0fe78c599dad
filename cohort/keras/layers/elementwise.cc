#include "cohort/keras/layers/elementwise.h"

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"

namespace cohort::keras::layers {
namespace {

class ActivationImpl final : public Layer, public internal::DescribesOperation {
 public:
  ActivationImpl(activations::Activation activation, const ActivationOptions& options)
      : Layer("Activation", {.name = options.name,
                             .dtype = options.dtype,
                             .activity_regularizer = options.activity_regularizer}),
        activation_(std::move(activation)),
        activity_regularizer_(options.activity_regularizer) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("activation", activation_);
      // Keras forgets it.
      field.unless("activity_regularizer", activity_regularizer_, regularizers::Regularizer());
    });
  }

  internal::LayerOperation operation(bool) const override { return {.activation = activation_}; }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    return internal::keep_mask(input, internal::activate_outputs(activation_, input));
  }

 private:
  activations::Activation activation_;
  regularizers::Regularizer activity_regularizer_;
};

class RescalingImpl final : public Layer {
 public:
  RescalingImpl(double scale, const RescalingOptions& options)
      : Layer("Rescaling", {.name = options.name, .dtype = options.dtype}),
        scale_(scale),
        offset_(options.offset) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("scale", scale_);
      field("offset", offset_);
    });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor scaled = in_compute_dtype(input) * scale_;
    return offset_ == 0 ? scaled : scaled + offset_;
  }

 private:
  double scale_;
  double offset_;
};

}  // namespace

Activation::Activation(activations::Activation activation, ActivationOptions options)
    : LayerHandle(std::make_shared<ActivationImpl>(std::move(activation), options)) {}

Rescaling::Rescaling(double scale, RescalingOptions options)
    : LayerHandle(std::make_shared<RescalingImpl>(scale, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_activation_layer(FieldReader& field) {
  keras::activations::Activation activation;
  layers::ActivationOptions options;
  field.common(options);
  field("activation", activation);
  field("activity_regularizer", options.activity_regularizer);
  return layers::Activation(std::move(activation), std::move(options));
}

layers::LayerHandle read_rescaling(FieldReader& field) {
  double scale = 1;
  layers::RescalingOptions options;
  field.common(options);
  field("scale", scale);
  field("offset", options.offset);
  return layers::Rescaling(scale, std::move(options));
}

}  // namespace cohort::internal
