// What follows an element that failed within a block.
#pragma once

#include <cstdint>

#include "cohort/data/iterator.h"

namespace cohort::internal {

// Passes over the `n` elements that fail with the one whose error is being handled. Where a device
// does not answer meanwhile, that error goes on all the same, and what was not passed over comes:
// so they are read, which unlike skip loses no count.
inline void skip_rest(DataIterator& input, int64_t n) {
  try {
    while (n > 0 && input.DataIterator::skip(1) > 0) --n;
  } catch (const InputDeadlineExceeded&) {
  }
}

}  // namespace cohort::internal
