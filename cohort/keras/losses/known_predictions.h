// What crossentropies know of the predictions that they get: whether they are scores or
// probabilities, and the scores behind probabilities.
#pragma once

#include <atomic>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Tells once in a process that a loss takes scores for probabilities. A loss looks at its first
// batches; later ones cost nothing.
class ScoreWatch {
 public:
  static constexpr int kLooks = 10;

  // are_shares: divided by their sum before they are used, so that they may be above 1.
  void look(const Tensor& predictions, const char* what, bool are_shares = false);

 private:
  std::atomic<int> left_{kLooks};
};

struct Predictions {
  Tensor values;
  bool are_logits;
};

// The logits, where the predictions know them: probabilities that are 1 to the last bit have no
// gradient. Warns once in a process where from_logits says that probabilities are logits.
Predictions best_known(const Tensor& predictions, const Tensor& logits, bool from_logits,
                       const char* what);

// -(y log p + (1 - y) log (1 - p)) of each element; y_true and the predictions have one shape and
// dtype.
Tensor crossentropy_of_elements(const Tensor& y_true, const Predictions& predictions);

}  // namespace cohort::internal
