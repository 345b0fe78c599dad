// Layers with several inputs, a tuple of tensors.
//
//   layers::Concatenate()({image_features, text_features});
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/symbolic.h"

namespace cohort::keras::layers {

struct AddOptions {
  std::string name = "";
};
// Shapes: two or more of [batch, ..] that broadcast -> their sum.
class COHORT_API Add : public LayerHandle {
 public:
  explicit Add(AddOptions options = {});
};

struct ConcatenateOptions {
  int64_t axis = -1;
  std::string name = "";
};
// Shapes: one or more tensors of the same rank, equal except along `axis` -> concatenated along it.
class COHORT_API Concatenate : public LayerHandle {
 public:
  explicit Concatenate(ConcatenateOptions options = {});
};

}  // namespace cohort::keras::layers
