// How many elements a dataset has, where that is not a plain number.
#pragma once

#include <cstdint>

namespace cohort::data {

inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;
// Their names in TensorFlow.
inline constexpr int64_t INFINITE_CARDINALITY = kInfiniteCardinality;
inline constexpr int64_t UNKNOWN_CARDINALITY = kUnknownCardinality;

}  // namespace cohort::data
