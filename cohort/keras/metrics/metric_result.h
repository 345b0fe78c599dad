// What Metric::result() returns: a tensor, of shape [] but for few metrics, that prints as a number.
//
//   std::cout << "Accuracy: " << accuracy.result() * 100;      // Accuracy: 87.5
#pragma once

#include <iosfwd>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/number_scalar.h"
#include "cohort/core/tensor.h"

namespace cohort::keras::metrics {

// Wherever a Tensor is expected it is one. Thread safety: as Tensor.
class MetricResult : public Tensor {
 public:
  explicit MetricResult(Tensor value) : Tensor(std::move(value)) {}
  explicit operator double() const { return item<double>(); }
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

// With the digits that its dtype has: 87.5.
COHORT_API std::ostream& operator<<(std::ostream& out, const MetricResult& result);

}  // namespace cohort::keras::metrics
