// Attention by sums of queries and keys (Bahdanau et al., 2015).
//
//   layers::AdditiveAttention attention({.dropout = 0.1});
//   Tensor read = attention(tuple(decoded, encoded)).tensor();   // the keys are the values
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct AdditiveAttentionOptions {
  bool use_scale = true;         // a weight that scales each feature of the sums
  double dropout = 0;            // of the scores, in [0, 1]
  bool use_causal_mask = false;  // no position attends to later ones
  bool return_attention_scores = false;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// softmax(scores) . values, where a score is sum(scale * tanh(query + key)).
// Shapes, masks and outputs: as Attention's. Weights: "scale" [d].
class COHORT_API AdditiveAttention : public LayerHandle {
 public:
  // Errors: InvalidArgument (the dropout).
  explicit AdditiveAttention(AdditiveAttentionOptions options = {});
};

}  // namespace cohort::keras::layers
