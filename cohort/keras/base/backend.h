// Settings that all of Keras shares: the default floating dtype and the names of layers.
//
//   keras::backend::set_floatx("float64");     // layers made from now on hold float64 weights
//   keras::backend::clear_session();           // the next Dense is called "dense" again
#pragma once

#include <string>
#include <string_view>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::keras::backend {

// The dtype of metrics, and of layers where there is no mixed_precision::set_global_policy, without
// one of their own; "float32" at start-up.
// Thread safety (all of this header): any thread.
COHORT_API std::string floatx();
// Errors: InvalidArgument (anything but "float32" and "float64").
COHORT_API void set_floatx(std::string_view name);

// The distance that probabilities are kept from 0 and 1.
inline constexpr double kEpsilon = 1e-7;

// Resets the counters of automatic names.
COHORT_API void clear_session();

// "conv2d", then "conv2d_1", ... for a class name such as "Conv2D".
COHORT_API std::string unique_object_name(std::string_view class_name);

}  // namespace cohort::keras::backend

namespace cohort::internal {
DType keras_floatx();
// "MaxPooling2D" -> "max_pooling2d".
std::string to_snake_case(std::string_view class_name);
}  // namespace cohort::internal
