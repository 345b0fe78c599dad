// Says whether a dtype holds a number. As in TensorFlow, nothing is cut off without a word: a
// floating number or a bool is no integer, a number is no bool, and an integer must be within an
// integer dtype's range. Floating dtypes take any number and round it.
#pragma once

#include <string>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

bool can_hold(DType dtype, const at::Scalar& number);

// `number` as an element of `dtype`, which can hold it: beyond the range of a floating dtype
// infinite, where at::full would throw.
at::Scalar held_number(DType dtype, const at::Scalar& number);

// "0.5", "3", "true".
std::string number_text(const at::Scalar& number);

}  // namespace cohort::internal
