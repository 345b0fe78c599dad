// When a callback saves: at the end of each epoch, or after so many steps.
#pragma once

#include <cstdint>
#include <string_view>

#include "cohort/core/error.h"

namespace cohort::keras::callbacks {

// Thread safety: none.
class SaveFreq {
 public:
  // "epoch". Errors: InvalidArgument (another word).
  SaveFreq(const char* word) {
    if (std::string_view(word) == "epoch") return;
    throw InvalidArgumentError(
        internal::str("save_freq is '", word, "'; it is \"epoch\" or a number of steps"));
  }
  // Errors: InvalidArgument (below 1).
  SaveFreq(int64_t steps) : steps_(steps) {
    if (steps < 1) {
      throw InvalidArgumentError(internal::str("save_freq is ", steps, "; it must be 1 or more"));
    }
  }
  SaveFreq(int steps) : SaveFreq(static_cast<int64_t>(steps)) {}

  bool each_epoch() const { return steps_ == 0; }
  // After step `batch` of an epoch: whether to save. Counts over epochs.
  bool is_due(int64_t batch) {
    if (steps_ == 0) return false;
    seen_ += batch <= last_ ? batch + 1 : batch - last_;
    last_ = batch;
    if (seen_ < steps_) return false;
    seen_ = 0;
    return true;
  }

 private:
  int64_t steps_ = 0;  // 0: each epoch
  int64_t seen_ = 0;
  int64_t last_ = -1;
};

}  // namespace cohort::keras::callbacks
