// Making tensors, with TensorFlow's names, defaults and dtypes:
//
//   Tensor x = tf::constant({{1., 2.}, {3., 4.}});        // float32 [2, 2]
//   Tensor ids = tf::constant({1, 2, 3}, tf::int64);
//   StringTensor words = tf::constant({"a", "b"});
//   Tensor zeros = tf::zeros({2, 3});                      // float32
//   Tensor steps = tf::range(10);                          // int32
//
// All are on the CPU. Thread safety: any thread.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/scalar_type.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/ops/literal.h"

namespace cohort {

struct ConstantOptions {
  // Missing: that of the literal (float32 for 1.5, int32 for 1), or of a vector's elements.
  std::optional<DType> dtype = std::nullopt;
  // The result's shape: a single number fills it; several must be as many as it has elements.
  std::optional<std::vector<int64_t>> shape = std::nullopt;
};

// Shape: [] of a number, else as the lists are nested.
// Errors: InvalidArgument (lists of different shapes; a number that the dtype cannot hold; as many
// numbers as options.shape does not have).
COHORT_API Tensor constant(const NumberLiteral& value, const ConstantOptions& options = {});
inline Tensor constant(std::initializer_list<NumberLiteral> values,
                       const ConstantOptions& options = {}) {
  return constant(NumberLiteral(values), options);
}
inline Tensor constant(const NumberLiteral& value, DType dtype) {
  return constant(value, ConstantOptions{.dtype = dtype});
}
inline Tensor constant(std::initializer_list<NumberLiteral> values, DType dtype) {
  return constant(NumberLiteral(values), ConstantOptions{.dtype = dtype});
}
// The tensor itself, cast and reshaped.
COHORT_API Tensor constant(const Tensor& value, const ConstantOptions& options = {});
inline StringTensor constant(const StringLiteral& value) { return value.tensor(); }

namespace internal {
// A copy of `count` numbers at `values`. Shape: [count].
COHORT_API Tensor copy_numbers(const void* values, size_t count, DType dtype);
COHORT_API Tensor stack_rows(const std::vector<Tensor>& rows);
COHORT_API StringTensor stack_rows(const std::vector<StringTensor>& rows);

template <class T>
inline constexpr bool kHoldsStrings = std::same_as<T, std::string>;
template <class T>
inline constexpr bool kHoldsStrings<std::vector<T>> = kHoldsStrings<T>;

template <class T>
auto vector_tensor(const std::vector<T>& values) {
  if constexpr (std::same_as<T, std::string>) {
    return StringTensor(values);
  } else if constexpr (std::same_as<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return copy_numbers(bytes.data(), bytes.size(), uint8).to(boolean);
  } else if constexpr (kIsNumber<T>) {
    return copy_numbers(values.data(), values.size(), number_dtype<T>());
  } else {
    std::vector<decltype(vector_tensor(values[0]))> rows;
    for (const T& row : values) rows.push_back(vector_tensor(row));
    return stack_rows(rows);
  }
}
}  // namespace internal

// A copy of a vector of numbers, of exactly their dtype (a double is float64, as in numpy), of
// strings, or of vectors of such. Errors: as above.
template <class T>
auto constant(const std::vector<T>& values, const ConstantOptions& options = {}) {
  if constexpr (internal::kHoldsStrings<T>) {
    const StringTensor strings = internal::vector_tensor(values);
    return options.shape ? strings.reshape(*options.shape) : strings;
  } else {
    return constant(internal::vector_tensor(values), options);
  }
}

// Errors of all: InvalidArgument (a negative size), ResourceExhausted (no memory).
COHORT_API Tensor zeros(at::IntArrayRef shape, DType dtype = float32);
COHORT_API Tensor ones(at::IntArrayRef shape, DType dtype = float32);
COHORT_API Tensor zeros_like(const Tensor& input, std::optional<DType> dtype = std::nullopt);
COHORT_API Tensor ones_like(const Tensor& input, std::optional<DType> dtype = std::nullopt);
// A tensor of the number's dtype: fill({2}, 0.5) is float32, fill({2}, 1) int32.
COHORT_API Tensor fill(at::IntArrayRef shape, const NumberLiteral& value);
COHORT_API Tensor eye(int64_t rows, DType dtype = float32);

// 0, 1, .. limit - 1; or start, start + delta, .. before limit, of the numbers' common dtype.
// Errors: InvalidArgument (delta 0, or away from limit).
COHORT_API Tensor range(const NumberLiteral& limit, std::optional<DType> dtype = std::nullopt);
COHORT_API Tensor range(const NumberLiteral& start, const NumberLiteral& limit,
                        const NumberLiteral& delta = 1, std::optional<DType> dtype = std::nullopt);
// `num` numbers from start to stop, both included.
COHORT_API Tensor linspace(double start, double stop, int64_t num, DType dtype = float32);

struct OneHotOptions {
  double on_value = 1;
  double off_value = 0;
  int64_t axis = -1;  // of the result, where `depth` comes
  DType dtype = float32;
};
// Shape: indices [..] -> [.., depth]. An index outside of [0, depth) has no on_value.
// Errors: InvalidArgument (indices that are no integers; depth below 0; axis).
COHORT_API Tensor one_hot(const Tensor& indices, int64_t depth, const OneHotOptions& options = {});

}  // namespace cohort
