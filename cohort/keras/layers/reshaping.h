// Layers that reshape each example, or leave it as it is.
//
//   layers::Flatten();               // [batch, 5, 5, 64] -> [batch, 1600]
//   layers::Reshape({40, -1});       // [batch, 5, 5, 64] -> [batch, 40, 40]
//   layers::Permute({2, 1});         // [batch, 10, 64] -> [batch, 64, 10]
//   layers::RepeatVector(3);         // [batch, 32] -> [batch, 3, 32]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

// Shapes: [batch, ..] -> [batch, ..] with dimension dims[i] of the input as the (i + 1)-th, any
// dtype.
class COHORT_API Permute : public LayerHandle {
 public:
  // Errors: InvalidArgument (not each of 1, 2 and so on once).
  explicit Permute(std::vector<int64_t> dims, ReshapingOptions options = {});
};

// Shapes: [batch, features] -> [batch, n, features], any dtype.
class COHORT_API RepeatVector : public LayerHandle {
 public:
  // Errors: InvalidArgument (n below 1, or above 2^31 - 1).
  explicit RepeatVector(int64_t n, ReshapingOptions options = {});
};

// Returns its inputs, whatever they are.
class COHORT_API Identity : public LayerHandle {
 public:
  explicit Identity(ReshapingOptions options = {});
};

}  // namespace cohort::keras::layers
