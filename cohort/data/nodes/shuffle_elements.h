// Shuffles what can only be read in order: by a buffer of elements.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/data/iteration/iterator.h"

namespace cohort::internal {

enum class SeedOrigin { kGiven, kDrawn, kAgreed };

struct ShuffleSeed {
  uint64_t seed;
  SeedOrigin origin;
  bool reshuffle;
  uint64_t epoch(uint64_t pass) const { return reshuffle ? pass : 0; }
};

// `cardinality` is the input's, and `capacity` the size of the buffer.
std::unique_ptr<DataIterator> make_shuffled_elements(std::unique_ptr<DataIterator> input,
                                                     int64_t cardinality, ShuffleSeed seed,
                                                     int64_t capacity, uint64_t epoch);

}  // namespace cohort::internal
