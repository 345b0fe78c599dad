// Batch normalization (Ioffe and Szegedy, 2015): in training, each channel of a batch gets mean 0
// and variance 1, then a scale and an offset that are learned.
//
//   layers::BatchNormalization({.synchronized = true});   // by the batches of all replicas
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct BatchNormalizationOptions {
  int64_t axis = -1;       // that of the channels
  double momentum = 0.99;  // of the moving mean and variance, in [0, 1]
  double epsilon = 1e-3;   // added to the variance; not below 0
  bool center = true;      // add "beta"
  bool scale = true;       // multiply by "gamma"
  initializers::Initializer beta_initializer = "zeros";
  initializers::Initializer gamma_initializer = "ones";
  initializers::Initializer moving_mean_initializer = "zeros";
  initializers::Initializer moving_variance_initializer = "ones";
  regularizers::Regularizer beta_regularizer = {};
  regularizers::Regularizer gamma_regularizer = {};
  constraints::Constraint beta_constraint = {};
  constraints::Constraint gamma_constraint = {};
  // Mean and variance are those of the batches of all replicas, also of empty ones. In training a
  // call is then COLLECTIVE.
  bool synchronized = false;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// In training by the batch's mean and variance, which also move the moving ones; else, and where
// the layer is not trainable, by the moving ones. Each replica moves its own; between steps, and in
// a checkpoint, they are the means over the replicas. An empty batch moves nothing.
// Shapes: [batch, ..], floating, of rank 2 or more -> the same.
// Weights: "gamma", "beta", "moving_mean", "moving_variance", each [channels].
// As in Keras, images (rank 4 and 5) that are not synchronized move the variance by its unbiased
// estimate.
class COHORT_API BatchNormalization : public LayerHandle {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit BatchNormalization(BatchNormalizationOptions options = {});
};

}  // namespace cohort::keras::layers
