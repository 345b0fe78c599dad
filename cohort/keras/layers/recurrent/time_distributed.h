// A layer or model, applied to each step of a sequence.
//
//   layers::TimeDistributed film(layers::Conv2D(8, 3));    // each picture of it
//   layers::TimeDistributed text(encoder_of_sentences);    // a model, of each sentence of it
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct TimeDistributedOptions {
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// The layer sees the steps of all examples as one batch [batch * steps, ..]: so does, for example,
// its BatchNormalization.
// Shapes: [batch, steps, ..] of rank 3 or more, each tensor of a tuple or dict -> [batch, steps,
// ..], each output. Weights: those of the child "layer".
// A mask [batch, steps, ..] reaches the layer as one of its batch, [batch * steps, ..] (without
// further dimensions only where a step is a vector). The outputs have the mask that the layer gives
// them, or else say which steps have anything that counts.
class COHORT_API TimeDistributed : public LayerHandle {
 public:
  // Errors: of a call InvalidArgument (a tensor of rank 2 or less, or of other batch or steps than
  // the first; a layer whose output is not of as many examples as its input).
  explicit TimeDistributed(const LayerHandle& layer, TimeDistributedOptions options = {});
};

}  // namespace cohort::keras::layers
