// Pairs of sentences about one topic, in which some words are masked as BERT's are.
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct MaskedSentenceOptions {
  int64_t words = 96;   // a multiple of the eight topics
  int64_t length = 24;  // of both sentences and three special tokens; 13 or more
  int64_t masked = 3;   // at most
  uint64_t seed = 1;
};

// A sentence walks through the words of its topic: after each comes one of two others.
//
// Inputs: {"tokens", "segments", "places"}. Tokens are [CLS] sentence [SEP] sentence [SEP] and
// padding, with 0 for padding, 1 [CLS], 2 [SEP], 3 [MASK], words from 4 on; segments are 1 in the
// second sentence. 15% of the words are to be named, `masked` at most: of these tokens 80% are
// [MASK], 10% any word, 10% as they were. Labels: int64 [rows, masked], the words that were there.
// Weights: float32 of that shape, 0 where a row has fewer, and 1 on average.
Rows make_masked_sentences(int64_t rows, const MaskedSentenceOptions& options);

}  // namespace models
