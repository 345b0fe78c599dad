// Padded sequences: which of their steps count.
//
//   Sequential({layers::Masking(), layers::LSTM(32), layers::Dense(1)});
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct MaskingOptions {
  double mask_value = 0;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// A step of which all features equal mask_value does not count. The layers that come after pass
// over it: recurrent layers, Bidirectional, GlobalAveragePooling1D, MultiHeadAttention, losses and
// metrics. Activation, BatchNormalization, Dense, Dropout, LayerNormalization, the merging layers
// and those of activation_layers.h hand on which steps count; all others end it, also layers of
// your own.
// Shapes: [batch, steps, features], any dtype -> the same, with zeros at the steps that do not
// count.
class COHORT_API Masking : public LayerHandle {
 public:
  explicit Masking(MaskingOptions options = {});
  explicit Masking(double mask_value) : Masking(MaskingOptions{.mask_value = mask_value}) {}
};

}  // namespace cohort::keras::layers
