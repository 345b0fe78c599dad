// Rows of a number for each class, and class numbers that belong to them: what losses and metrics
// of a small step ask, as one operation each way. Such a step pays for each of libtorch's some
// five.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Whether the functions below take them: labels [..] that are uint8, int32 or int64, and float32
// values [.., classes], both on the host; few enough that a thread is done before others would have
// begun.
bool are_small_class_rows(const Tensor& labels, const Tensor& values);

// log(sum(exp(logits))) - logits[label] of each row. Differentiable, any number of times.
// Shapes: labels [..], logits [.., classes] -> [..]. Undefined where a label lies outside of
// [0, classes).
Tensor crossentropy_of_rows(const Tensor& labels, const Tensor& logits);

// Whether the first of each row's largest values stands at its label; NaN is the largest.
// Shapes: labels [..], values [.., classes] -> [..], bool.
Tensor matches_of_rows(const Tensor& labels, const Tensor& values);

}  // namespace cohort::internal
