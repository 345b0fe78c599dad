// Layers that reshape each example.
//
//   layers::Flatten();               // [batch, 5, 5, 64] -> [batch, 1600]
//   layers::Reshape({40, -1});       // [batch, 5, 5, 64] -> [batch, 40, 40]
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct ReshapingOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, ..] -> [batch, elements of an example], any dtype.
class COHORT_API Flatten : public LayerHandle {
 public:
  explicit Flatten(ReshapingOptions options = {});
};

// Shapes: [batch, ..] -> [batch, target_shape..], any dtype; one size may be -1 (what is left).
class COHORT_API Reshape : public LayerHandle {
 public:
  // Errors: InvalidArgument (a size below -1, or -1 twice).
  explicit Reshape(Shape target_shape, ReshapingOptions options = {});
};

}  // namespace cohort::keras::layers
