// The rectifier that learns its slope below 0 (He et al., 2015).
//
//   layers::PReLU({.shared_axes = {1, 2}});   // one slope for each channel of images
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct PReLUOptions {
  initializers::Initializer alpha_initializer = "zeros";
  regularizers::Regularizer alpha_regularizer = {};
  constraints::Constraint alpha_constraint = {};
  std::vector<int64_t> shared_axes = {};  // along which all elements have one slope; 1 or more
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// x above 0, else alpha * x.
// Shape: [batch, ..], floating -> the same. Weight: "alpha", of the shape of an example, with 1
// along shared_axes.
class COHORT_API PReLU : public LayerHandle {
 public:
  // Errors: InvalidArgument (of its build, a shared axis that is the batch's or that the input does
  // not have).
  explicit PReLU(PReLUOptions options = {});
};

}  // namespace cohort::keras::layers
