// The C++ types that stand for a leaf of shape []: numbers of exactly one dtype, and strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

template <class T>
inline constexpr bool kIsNumber =
    std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, int8_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int16_t> ||
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> || std::is_same_v<T, long long>;
template <class T>
inline constexpr bool kIsText =
    std::is_same_v<T, std::string_view> || std::is_same_v<T, std::string>;
template <class T>
inline constexpr bool kIsScalar = kIsNumber<T> || kIsText<T>;

// The dtype of a number type.
template <class T>
constexpr DType number_dtype() {
  static_assert(kIsNumber<T>);
  if constexpr (std::is_same_v<T, bool>)
    return boolean;
  else if constexpr (std::is_same_v<T, float>)
    return float32;
  else if constexpr (std::is_same_v<T, double>)
    return float64;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Char;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return uint8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Short;
  else if constexpr (std::is_same_v<T, int32_t>)
    return int32;
  else
    return int64;
}

}  // namespace cohort::internal
