// C++ numbers of every type as libtorch's scalars, which can be made of some types only: not of
// size_t, for one.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Errors: InvalidArgument (above what int64 holds).
template <class T>
requires std::is_arithmetic_v<T> at::Scalar number_scalar(T number) {
  if constexpr (std::same_as<T, bool>) {
    return number;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(number);
  } else {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(int64_t)) {
      if (number > static_cast<T>(std::numeric_limits<int64_t>::max())) {
        throw InvalidArgumentError(str("the number ", number, " is above what int64 holds"));
      }
    }
    return static_cast<int64_t>(number);
  }
}

}  // namespace cohort::internal
