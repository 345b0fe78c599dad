#include "cohort/keras/layers/elementwise.h"

#include <utility>

#include "cohort/keras/layers/fusion.h"

namespace cohort::keras::layers {
namespace {

class ActivationImpl final : public Layer, public internal::HasEpilogue {
 public:
  ActivationImpl(activations::Activation activation, const ActivationOptions& options)
      : Layer("Activation",
              {.name = options.name, .activity_regularizer = options.activity_regularizer}),
        activation_(std::move(activation)) {}

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override { return activation_(input); }
  const activations::Activation& final_activation() const override { return activation_; }
  Tensor call_without_epilogue(const Tensor& input) override { return input; }
  internal::Epilogue epilogue() const override { return {Tensor(), &activation_}; }

 private:
  activations::Activation activation_;
};

class RescalingImpl final : public Layer {
 public:
  RescalingImpl(double scale, const RescalingOptions& options)
      : Layer("Rescaling", {.name = options.name, .dtype = options.dtype}),
        scale_(scale),
        offset_(options.offset) {}

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor scaled = input.to(dtype()) * scale_;
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
