// Translation by attention alone: the Transformer (Vaswani et al., 2017).
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct TransformerConfig {
  int64_t words = 40;   // of each language
  int64_t longest = 9;  // words of a sentence
  int64_t features = 64;
  int64_t layers = 1;  // of the encoder, and of the decoder
  int64_t heads = 4;
  int64_t inner = 128;  // units between two dense layers
  double dropout = 0.1;
};

// {"source": int64 [batch, steps], "target": int64 [batch, its steps]}, what was said so far ->
// logits of the next word [batch, its steps, words + 3].
cohort::keras::ModelHandle make_transformer(const TransformerConfig& config);

// It learns a small language (translations.h).
Example transformer_example(const TransformerConfig& config);

}  // namespace models
