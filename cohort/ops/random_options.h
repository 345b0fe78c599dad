// The options of random draws, and the state of a stream of random numbers.
#pragma once

#include <cstdint>

#include "cohort/core/structure/tensor.h"

namespace cohort::random {

struct UniformOptions {
  double minval = 0;      // inclusive
  double maxval = 1;      // exclusive
  DType dtype = float32;  // integers draw from [minval, maxval)
};
struct NormalOptions {
  double mean = 0;
  double stddev = 1;
  DType dtype = float32;
};

// The state of one stream.
struct GeneratorState {
  uint64_t seed = 0;
  uint64_t stream = 0;
  uint64_t position = 0;
  bool operator==(const GeneratorState&) const = default;
};

}  // namespace cohort::random
