// Layers with several inputs, a tuple of tensors.
//
//   layers::Concatenate()({image_features, text_features});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct MergeOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
using AddOptions = MergeOptions;

// The next six work element by element. Shapes: two or more of [batch, ..] that broadcast -> the
// shape to which they broadcast.

// The sum.
class COHORT_API Add : public LayerHandle {
 public:
  explicit Add(MergeOptions options = {});
};
// The first of two less the second.
class COHORT_API Subtract : public LayerHandle {
 public:
  explicit Subtract(MergeOptions options = {});
};
// The product.
class COHORT_API Multiply : public LayerHandle {
 public:
  explicit Multiply(MergeOptions options = {});
};
// The mean.
class COHORT_API Average : public LayerHandle {
 public:
  explicit Average(MergeOptions options = {});
};
class COHORT_API Maximum : public LayerHandle {
 public:
  explicit Maximum(MergeOptions options = {});
};
class COHORT_API Minimum : public LayerHandle {
 public:
  explicit Minimum(MergeOptions options = {});
};

struct ConcatenateOptions {
  int64_t axis = -1;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};
// Shapes: one or more tensors of the same rank, equal except along `axis` -> concatenated along it.
class COHORT_API Concatenate : public LayerHandle {
 public:
  explicit Concatenate(ConcatenateOptions options = {});
};

}  // namespace cohort::keras::layers
