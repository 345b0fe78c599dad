// Layers without weights that apply the same function to each element.
//
//   layers::Rescaling(1.0 / 255);
//   layers::Activation("relu");
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct ActivationOptions {
  regularizers::Regularizer activity_regularizer = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// Shape: [..] -> the same.
class COHORT_API Activation : public LayerHandle {
 public:
  explicit Activation(activations::Activation activation, ActivationOptions options = {});
};

struct RescalingOptions {
  double offset = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// x * scale + offset in the layer's dtype. Shape: [..], any numeric dtype -> the same.
class COHORT_API Rescaling : public LayerHandle {
 public:
  explicit Rescaling(double scale, RescalingOptions options = {});
};

}  // namespace cohort::keras::layers
