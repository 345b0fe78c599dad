// Sentences of a small language and their translations.
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct TranslationOptions {
  int64_t words = 40;   // of each language; an even number
  int64_t longest = 9;  // words of a sentence; the shortest have 3
  uint64_t seed = 1;
};

// Each word has one translation. Words with even numbers are adjectives: one that stands before a
// noun comes behind it in the translation.
//
// Inputs: {"source": int64 [rows, longest], "target": int64 [rows, longest + 1], which begins with 1
// and holds what was said so far}. Labels: int64 [rows, longest + 1], what comes next, and 2 at the
// end. Ids of words begin at 3; 0 is padding. Weights: float32 of the labels' shape, 0 at padding,
// and 1 on average.
Rows make_translations(int64_t rows, const TranslationOptions& options);
// How many ids a language of so many words has.
int64_t translation_vocabulary(int64_t words);

}  // namespace models
