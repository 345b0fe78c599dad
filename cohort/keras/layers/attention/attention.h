// Attention by products of queries and keys (Luong et al., 2015).
//
//   layers::Attention attention({.use_scale = true});
//   Tensor read = attention(tuple(decoded, encoded)).tensor();   // the keys are the values
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct AttentionOptions {
  bool use_scale = false;          // a weight that scales the scores
  double dropout = 0;              // of the scores, in [0, 1]
  std::string score_mode = "dot";  // "dot" or "concat", see below
  bool use_causal_mask = false;    // no position attends to later ones
  bool return_attention_scores = false;
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// softmax(scores) . values, where a score is scale * query . key, or by "concat"
// concat_score_weight * sum(tanh(scale * (query + key))).
// Inputs, a tuple: queries [batch, t, d], values [batch, s, e], perhaps keys [batch, s, d]
// (missing: the values). -> [batch, t, e]; with return_attention_scores a tuple of that and the
// scores [batch, t, s], after softmax and dropout. Further dimensions may stand after the batch.
// No query attends to values that are masked; where a query is, the output is 0 and masked.
// Weights: "scale" and "concat_score_weight", scalars.
class COHORT_API Attention : public LayerHandle {
 public:
  // Errors: InvalidArgument (the dropout, the score_mode).
  explicit Attention(AttentionOptions options = {});
};

}  // namespace cohort::keras::layers
