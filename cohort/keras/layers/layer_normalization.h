// Layer normalization (Ba et al., 2016): each example gets mean 0 and variance 1 over its features,
// then a scale and an offset that are learned.
//
//   layers::LayerNormalization({.epsilon = 1e-6});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct LayerNormalizationOptions {
  std::vector<int64_t> axis = {-1};  // over which mean and variance are taken
  double epsilon = 1e-3;             // added to the variance; not below 0
  bool center = true;                // add "beta"
  bool scale = true;                 // multiply by "gamma"
  initializers::Initializer beta_initializer = "zeros";
  initializers::Initializer gamma_initializer = "ones";
  regularizers::Regularizer beta_regularizer = {};
  regularizers::Regularizer gamma_regularizer = {};
  constraints::Constraint beta_constraint = {};
  constraints::Constraint gamma_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, ..], floating -> the same. Weights: "gamma" and "beta", of the sizes of `axis`,
// in its order. Keras, too, uses those of {3, 1} along 1 and 3 as they lie in memory.
class COHORT_API LayerNormalization : public LayerHandle {
 public:
  // Errors: InvalidArgument (epsilon; of its build, an axis that the input does not have, or
  // twice).
  explicit LayerNormalization(LayerNormalizationOptions options = {});
};

}  // namespace cohort::keras::layers
