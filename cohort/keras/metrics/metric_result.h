// What Metric::result() returns: a tensor, of shape [] but for few metrics, that prints as a
// number.
//
//   std::cout << "Accuracy: " << accuracy.result() * 100;      // Accuracy: 87.5
//   double value = accuracy.result();
//   if (accuracy.result() > 0.9) std::cout << "done";
#pragma once

#include <iosfwd>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/number_scalar.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::keras::metrics {

// Wherever a Tensor is expected it is one, and where a number is, its number. Thread safety: as
// Tensor.
class MetricResult : public Tensor {
 public:
  explicit MetricResult(Tensor value) : Tensor(std::move(value)) {}
  // Errors: InvalidArgument (not a scalar; names the shape).
  operator double() const { return number(); }
  COHORT_API double number() const;
};

template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator*(const MetricResult& a, Number b) {
  return MetricResult(static_cast<const Tensor&>(a) * internal::number_scalar(b));
}
template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator*(Number a, const MetricResult& b) {
  return b * a;
}
template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator/(const MetricResult& a, Number b) {
  return MetricResult(static_cast<const Tensor&>(a) / internal::number_scalar(b));
}
template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator-(Number a, const MetricResult& b) {
  return MetricResult(internal::number_scalar(a) - static_cast<const Tensor&>(b));
}

template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator-(const MetricResult& a, Number b) {
  return MetricResult(static_cast<const Tensor&>(a) - internal::number_scalar(b));
}
template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator+(const MetricResult& a, Number b) {
  return MetricResult(static_cast<const Tensor&>(a) + internal::number_scalar(b));
}
template <class Number>
requires std::is_arithmetic_v<Number> MetricResult operator+(Number a, const MetricResult& b) {
  return b + a;
}
template <class Number>
requires std::is_arithmetic_v<Number>
double operator/(Number a, const MetricResult& b) { return static_cast<double>(a) / b.number(); }

// Comparisons are of numbers, so that they can stand in an if. Errors: as number().
inline bool operator<(const MetricResult& a, const MetricResult& b) {
  return a.number() < b.number();
}
inline bool operator>(const MetricResult& a, const MetricResult& b) { return b < a; }
inline bool operator<=(const MetricResult& a, const MetricResult& b) {
  return a.number() <= b.number();
}
inline bool operator>=(const MetricResult& a, const MetricResult& b) { return b <= a; }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator<(const MetricResult& a, Number b) { return a.number() < static_cast<double>(b); }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator>(const MetricResult& a, Number b) { return a.number() > static_cast<double>(b); }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator<=(const MetricResult& a, Number b) { return a.number() <= static_cast<double>(b); }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator>=(const MetricResult& a, Number b) { return a.number() >= static_cast<double>(b); }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator<(Number a, const MetricResult& b) { return b > a; }
template <class Number>
requires std::is_arithmetic_v<Number>
bool operator>(Number a, const MetricResult& b) { return b < a; }

// Prints the digits that its dtype has: 87.5.
COHORT_API std::ostream& operator<<(std::ostream& out, const MetricResult& result);

}  // namespace cohort::keras::metrics
