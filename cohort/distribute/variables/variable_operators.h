// Operators of variables with tensors and numbers, on value():
//
//   Tensor y = 2 * weight + x;
//   if ((count > 3).item<bool>()) ...      // comparisons are elementwise, as those of tensors
//
// `v == w` of two variables asks whether they are the same one.
#pragma once

#include <concepts>
#include <type_traits>

#include "cohort/core/structure/number_scalar.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort {
namespace internal {

// What has the operators of a variable: it has value(), and lies in cohort::distribute.
template <class T>
inline constexpr bool kHasVariableOperators = std::same_as<T, distribute::Variable>;
template <class T>
concept VariableLike = kHasVariableOperators<T>;

template <class T>
concept VariableOperand = VariableLike<T> || std::same_as<T, Tensor> || std::is_arithmetic_v<T>;
// An operation of which one side is a variable.
template <class A, class B>
concept VariableOperands = VariableOperand<A> && VariableOperand<B> &&
    (VariableLike<A> || VariableLike<B>);
template <class A, class B>
concept VariableAndValue = VariableOperands<A, B> && !std::same_as<A, B>;

inline Tensor operand(const distribute::Variable& variable) { return variable.value(); }
template <VariableLike V>
Tensor operand(const V& variable) {
  return variable.value();
}
inline const Tensor& operand(const Tensor& tensor) { return tensor; }
template <class Number>
requires std::is_arithmetic_v<Number> at::Scalar operand(Number number) {
  return number_scalar(number);
}

}  // namespace internal

namespace distribute {

inline Tensor operator-(const Variable& v) { return -v.value(); }
template <internal::VariableLike V>
Tensor operator-(const V& v) {
  return -v.value();
}

template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator+(const A& a, const B& b) {
  return internal::operand(a) + internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator-(const A& a, const B& b) {
  return internal::operand(a) - internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator*(const A& a, const B& b) {
  return internal::operand(a) * internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator/(const A& a, const B& b) {
  return internal::operand(a) / internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator<(const A& a, const B& b) {
  return internal::operand(a) < internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator<=(const A& a, const B& b) {
  return internal::operand(a) <= internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator>(const A& a, const B& b) {
  return internal::operand(a) > internal::operand(b);
}
template <class A, class B>
requires internal::VariableOperands<A, B> Tensor operator>=(const A& a, const B& b) {
  return internal::operand(a) >= internal::operand(b);
}
template <class A, class B>
requires internal::VariableAndValue<A, B> Tensor operator==(const A& a, const B& b) {
  return internal::operand(a) == internal::operand(b);
}
template <class A, class B>
requires internal::VariableAndValue<A, B> Tensor operator!=(const A& a, const B& b) {
  return internal::operand(a) != internal::operand(b);
}

}  // namespace distribute
}  // namespace cohort
