// What BERT and the Transformer are built of (Vaswani et al., 2017): each part is added to what it
// has read, and the sum is normalized.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <string>

namespace models {

struct BlockOptions {
  int64_t heads = 4;
  int64_t inner = 128;  // units of the layer between
  std::string activation = "relu";
  double dropout = 0.1;
  double epsilon = 1e-6;  // of normalization
};

struct EmbeddingsOptions {
  int64_t vocabulary;
  int64_t length;  // of the longest sequence
  int64_t features;
  // Whether the id 0 is padding, to which nobody attends.
  bool padded = false;
};

// Ids [batch, steps] -> [batch, steps, features], of tokens and their positions, not yet normalized.
cohort::keras::SymbolicTensor embed(const EmbeddingsOptions& options,
                                    const cohort::keras::SymbolicTensor& ids);
// Shape: [..] -> the same.
cohort::keras::SymbolicTensor normalize_and_drop(const BlockOptions& options,
                                                 const cohort::keras::SymbolicTensor& x);

// Self-attention, then two dense layers. Shape: [batch, steps, features] -> the same.
cohort::keras::SymbolicTensor encoder_block(const BlockOptions& options,
                                            const cohort::keras::SymbolicTensor& x);
// Self-attention to earlier steps, attention to what the encoder has made, two dense layers.
// Shapes: [batch, steps, features], encoded [batch, its steps, features] -> that of the first.
cohort::keras::SymbolicTensor decoder_block(const BlockOptions& options,
                                            const cohort::keras::SymbolicTensor& x,
                                            const cohort::keras::SymbolicTensor& encoded);

}  // namespace models
