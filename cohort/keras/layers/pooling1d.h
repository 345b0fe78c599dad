// Pooling of sequences.
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/layer_handle.h"

namespace cohort::keras::layers {

struct GlobalPooling1DOptions {
  std::string name = "";
};

// The mean over the steps. Shapes: [batch, steps, features] -> [batch, features], floating.
class COHORT_API GlobalAveragePooling1D : public LayerHandle {
 public:
  explicit GlobalAveragePooling1D(GlobalPooling1DOptions options = {});
};

}  // namespace cohort::keras::layers
