// Translation by recurrent layers with attention (Bahdanau et al., 2015; Luong et al., 2015).
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct NmtConfig {
  int64_t words = 40;   // of each language
  int64_t longest = 9;  // words of a sentence
  int64_t features = 48;
  int64_t units = 64;
  double dropout = 0.1;
};

// {"source": int64 [batch, steps], "target": int64 [batch, its steps]}, what was said so far ->
// logits of the next word [batch, its steps, words + 3].
cohort::keras::ModelHandle make_nmt(const NmtConfig& config);

// It learns a small language (translations.h).
Example nmt_example(const NmtConfig& config);

}  // namespace models
