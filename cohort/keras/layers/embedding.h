// Turns ids into vectors: each id selects a row of a table of weights.
//
//   layers::Embedding(/*input_dim=*/10'000, /*output_dim=*/16);
#pragma once

#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct EmbeddingOptions {
  initializers::Initializer embeddings_initializer = "uniform";
  regularizers::Regularizer embeddings_regularizer = {};
  constraints::Constraint embeddings_constraint = {};  // updates then write the whole table
  bool mask_zero = false;                              // the id 0 is padding: see Masking
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: ids [..] -> [.., output_dim]. Ids are int32 or int64; others are rounded towards zero.
// RaggedTensor of ids -> RaggedTensor of vectors, with the same rows.
// Weight: "embeddings" [input_dim, output_dim]; its gradient is sparse.
// Errors (call): InvalidArgument (an id outside [0, input_dim): names it and its position; on a
// GPU a later step throws it, and names the id and its step).
class COHORT_API Embedding : public LayerHandle {
 public:
  // Errors: InvalidArgument (a dimension below 1).
  Embedding(int64_t input_dim, int64_t output_dim, EmbeddingOptions options = {});
};

}  // namespace cohort::keras::layers
