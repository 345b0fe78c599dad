// Attention by several heads at once (Vaswani et al., 2017).
//
//   layers::MultiHeadAttention attention(8, 64, {.use_causal_mask = true});
//   Tensor y = attention(tuple(x, x)).tensor();   // self-attention: queries and values are x
//
//   layers::MultiHeadAttention looking(8, 64, {.return_attention_scores = true});
//   Structure y_and_scores = looking(tuple(x, memory));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct MultiHeadAttentionOptions {
  std::optional<int64_t> value_dim = std::nullopt;  // missing: key_dim
  double dropout = 0;                               // of the attention scores, in [0, 1]
  bool use_bias = true;
  std::optional<int64_t> output_dim = std::nullopt;  // missing: that of the queries
  std::vector<int64_t> output_shape = {};            // of outputs of several dimensions
  // The dimensions of the inputs over which it attends; empty: all between the batch and the
  // features.
  std::vector<int64_t> attention_axes = {};
  bool use_causal_mask = false;          // no position attends to later ones
  bool return_attention_scores = false;  // a tuple: the outputs, then the scores
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Inputs, a tuple: queries [batch, t, d], values [batch, s, e]; keys [batch, s, f] (missing: the
// values); a mask of bool or numbers [t, s], [batch, t, s] or [batch, heads, t, s], with 1 in place
// of what is the same for all, 0 where a query must not attend to a key (missing: all may). ->
// [batch, t, output_dim], or [batch, t, output_shape..]; the scores are [batch, heads, t, s],
// before dropout. Inputs of higher rank have further dimensions between the batch and the features:
// the scores are then [batch, those that are no attention axes.., heads, queries' axes.., keys'
// axes..]. Weights, of children "_query_dense", "_key_dense", "_value_dense" and "_output_dense":
// "kernel" [features, heads, key_dim or value_dim], and [heads, value_dim, output_dim] of the last;
// "bias".
class COHORT_API MultiHeadAttention : public LayerHandle {
 public:
  // Errors: InvalidArgument (num_heads, key_dim or an option, with its value; output_dim beside
  // output_shape); of a call, too (an attention axis that the inputs do not have).
  MultiHeadAttention(int64_t num_heads, int64_t key_dim, MultiHeadAttentionOptions options = {});
};

}  // namespace cohort::keras::layers
