// Numbers and strings as they stand in a program, alone or in nested lists, for tf::constant and
// Variable:
//
//   constant(1.5);   constant({{1, 2}, {3, 4}});   Variable v({0., 2., 0.});
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/number_scalar.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {
namespace internal {

template <class T>
concept LiteralNumber =
    std::is_arithmetic_v<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

// The dtype that Python's numbers would get, as far as C++ knows it: float32 for double, too.
template <LiteralNumber T>
constexpr DType literal_dtype() {
  if constexpr (std::same_as<T, bool>) {
    return boolean;
  } else if constexpr (std::floating_point<T>) {
    return float32;
  } else if constexpr (sizeof(T) == 1) {
    return std::is_signed_v<T> ? DType::Char : DType::Byte;
  } else if constexpr (sizeof(T) == 2 && std::is_signed_v<T>) {
    return DType::Short;
  } else {
    return sizeof(T) < 4 || (sizeof(T) == 4 && std::is_signed_v<T>) ? int32 : int64;
  }
}

}  // namespace internal

// A number, or lists of equal shape. Its dtype is TensorFlow's for Python: float32 for a double,
// int32 for an int, bool for a bool; a list of integers and floating numbers is float32. Unlike
// Python's, a C++ integer of 64 bits is int64.
class COHORT_API NumberLiteral {
 public:
  // Errors: InvalidArgument (above what int64 holds).
  template <internal::LiteralNumber T>
  NumberLiteral(T value)
      : dtype_(internal::literal_dtype<T>()), values_{internal::number_scalar(value)} {}
  // Errors: InvalidArgument (members of different shapes; true or false beside numbers).
  NumberLiteral(std::initializer_list<NumberLiteral> members);

  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  // Errors: InvalidArgument (a value that `dtype` cannot hold; a floating number or bool for an
  // integer dtype, as in TensorFlow).
  Tensor tensor(std::optional<DType> dtype = std::nullopt) const;
  // The number. Errors: InvalidArgument (a list).
  const at::Scalar& number() const;

 private:
  DType dtype_;
  std::vector<int64_t> shape_;
  std::vector<at::Scalar> values_;  // row-major
};

// A string, or lists of equal shape.
class COHORT_API StringLiteral {
 public:
  template <std::convertible_to<std::string_view> T>
  StringLiteral(const T& value) : values_{std::string(std::string_view(value))} {}
  // Errors: InvalidArgument (members of different shapes).
  StringLiteral(std::initializer_list<StringLiteral> members);

  StringTensor tensor() const { return StringTensor(values_, shape_); }

 private:
  std::vector<int64_t> shape_;
  std::vector<std::string> values_;
};

}  // namespace cohort
