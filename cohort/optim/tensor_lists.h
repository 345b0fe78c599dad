// Lists of tensors as the numbers of a formula: one operation on all tensors of a list, in a few
// kernels of the device. An operation rounds each element once, as float and double do on the host.
#pragma once

#include <utility>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The value of an expression.
struct TensorList {
  std::vector<Tensor> tensors;
};

// A number of a formula that may change from step to step: the host's, or where `on_device` is
// defined the one there, of shape [] and the dtype of the tensors that it meets.
struct TensorNumber {
  double value = 0;
  Tensor on_device = {};
};

// Tensors that a formula writes to.
class StoredTensors : public TensorList {
 public:
  explicit StoredTensors(std::vector<Tensor> stored) : TensorList{std::move(stored)} {}
  StoredTensors(const StoredTensors&) = delete;
  void operator=(const StoredTensors& values) { *this = static_cast<const TensorList&>(values); }

  void operator=(const TensorList& values);
  void operator+=(const TensorList& values);
  void operator-=(const TensorList& values);
};

// A temporary on the left gives its memory to the result.
TensorList operator+(const TensorList& a, const TensorList& b);
TensorList operator+(TensorList&& a, const TensorList& b);
TensorList operator-(const TensorList& a, const TensorList& b);
TensorList operator-(TensorList&& a, const TensorList& b);
TensorList operator*(const TensorList& a, const TensorList& b);
TensorList operator*(TensorList&& a, const TensorList& b);
TensorList operator/(const TensorList& a, const TensorList& b);
TensorList operator/(TensorList&& a, const TensorList& b);
TensorList operator+(const TensorList& a, double b);
TensorList operator+(TensorList&& a, double b);
TensorList operator*(const TensorList& a, double b);
TensorList operator*(TensorList&& a, double b);
TensorList operator*(double a, const TensorList& b);
TensorList operator*(double a, TensorList&& b);
TensorList operator/(const TensorList& a, double b);
TensorList operator/(TensorList&& a, double b);
TensorList operator*(const TensorList& a, const TensorNumber& b);
TensorList operator*(TensorList&& a, const TensorNumber& b);
TensorList operator*(const TensorNumber& a, const TensorList& b);
TensorList operator*(const TensorNumber& a, TensorList&& b);
TensorList operator/(const TensorList& a, const TensorNumber& b);
TensorList operator/(TensorList&& a, const TensorNumber& b);
TensorList operator+(TensorList&& a, const TensorNumber& b);
TensorList operator-(const TensorList& a);
TensorList operator-(TensorList&& a);

TensorList inverse(const TensorList& values);
TensorList square_root(const TensorList& values);
TensorList magnitude(const TensorList& values);
TensorList power_of(const TensorList& values, double exponent);
// 1, 0 or -1; NaN stays.
TensorList sign_of(const TensorList& values);
// `a` where it is not less than `b`, else `b`.
TensorList larger(const TensorList& a, const TensorList& b);
// Cut to [-most, most]; NaN stays.
TensorList clipped(const TensorList& values, double most);

}  // namespace cohort::internal
