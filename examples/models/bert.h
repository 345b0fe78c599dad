// BERT's encoder (Devlin et al., 2019), which learns to name words that were masked.
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct BertConfig {
  int64_t words = 96;   // besides the four special tokens
  int64_t length = 24;  // of two sentences and their separators
  int64_t features = 64;
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t inner = 128;  // units between two dense layers
  int64_t masked = 3;   // places of a row at most
  double dropout = 0.1;
};

// {"tokens", "segments": int64 [batch, length], "places": int64 [batch, masked]} -> the logits of
// the words at these places, [batch, masked, words + 4].
cohort::keras::ModelHandle make_bert(const BertConfig& config);

// It learns masked sentences (masked_sentences.h).
Example bert_example(const BertConfig& config);

}  // namespace models
