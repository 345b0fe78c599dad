// Small helpers, as in keras.utils.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::keras::utils {

// Seeds all random numbers of a program: random::set_seed, and libtorch's own generator, from which
// modules of torch::nn draw (initial values, dropout).
COHORT_API void set_random_seed(uint64_t seed);

// Vectors of 0 with a 1 at the place of each class: labels for CategoricalCrossentropy.
// num_classes: missing: the largest class and one.
// Shapes: classes [..] or [.., 1], any integer dtype, or whole numbers of a floating one ->
// [.., num_classes], float32.
// Errors: InvalidArgument (a class outside [0, num_classes), with its place; a fraction; no classes
// and no num_classes; num_classes below 1), ResourceExhausted (more memory than there is).
COHORT_API Tensor to_categorical(const Tensor& classes,
                                 std::optional<int64_t> num_classes = std::nullopt);

}  // namespace cohort::keras::utils
