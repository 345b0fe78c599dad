// Group normalization (Wu and He, 2018): each example's channels are normalized in groups.
//
//   layers::GroupNormalization({.groups = 8});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct GroupNormalizationOptions {
  int64_t groups = 32;    // consecutive channels; -1: each channel is one (instance normalization)
  int64_t axis = -1;      // of the channels
  double epsilon = 1e-3;  // added to the variance; not below 0
  bool center = true;     // add "beta"
  bool scale = true;      // multiply by "gamma"
  initializers::Initializer beta_initializer = "zeros";
  initializers::Initializer gamma_initializer = "ones";
  regularizers::Regularizer beta_regularizer = {};
  regularizers::Regularizer gamma_regularizer = {};
  constraints::Constraint beta_constraint = {};
  constraints::Constraint gamma_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, ..], floating -> the same. Weights: "gamma" and "beta" [channels].
class COHORT_API GroupNormalization : public LayerHandle {
 public:
  // Errors: InvalidArgument (epsilon; groups that are neither -1 nor above 0; of its build, an axis
  // that the input does not have, or groups that do not divide the channels).
  explicit GroupNormalization(GroupNormalizationOptions options = {});
};

}  // namespace cohort::keras::layers
