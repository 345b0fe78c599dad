// Small helpers, as in keras.utils.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"

namespace cohort::keras::utils {

// Seeds all random numbers of a program: random::set_seed, and libtorch's own generator, from which
// modules of torch::nn draw (initial values, dropout).
COHORT_API void set_random_seed(uint64_t seed);

}  // namespace cohort::keras::utils
