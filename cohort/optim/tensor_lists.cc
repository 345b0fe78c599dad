#include "cohort/optim/tensor_lists.h"

#include <ATen/ops/_foreach_abs.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_div.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_neg.h>
#include <ATen/ops/_foreach_reciprocal.h>
#include <ATen/ops/_foreach_sqrt.h>
#include <ATen/ops/_foreach_sub.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/full.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sign.h>
#include <ATen/ops/where.h>
#include <torch/version.h>

#include <cstddef>

namespace cohort::internal {
namespace {

// For operations that libtorch does not have for lists.
template <class Operation>
TensorList one_by_one(const TensorList& values, const Operation& operation) {
  TensorList results;
  results.tensors.reserve(values.tensors.size());
  for (const Tensor& value : values.tensors) results.tensors.push_back(operation(value));
  return results;
}

Tensor on_device(double number, const Tensor& like) { return at::full({}, number, like.options()); }

}  // namespace

void StoredTensors::operator=(const TensorList& values) {
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(values.tensors[i]);
}
void StoredTensors::operator+=(const TensorList& values) {
  at::_foreach_add_(tensors, values.tensors);
}
void StoredTensors::operator-=(const TensorList& values) {
  at::_foreach_sub_(tensors, values.tensors);
}

TensorList operator+(const TensorList& a, const TensorList& b) {
  return {at::_foreach_add(a.tensors, b.tensors)};
}
TensorList operator+(TensorList&& a, const TensorList& b) {
  at::_foreach_add_(a.tensors, b.tensors);
  return std::move(a);
}
TensorList operator-(const TensorList& a, const TensorList& b) {
  return {at::_foreach_sub(a.tensors, b.tensors)};
}
TensorList operator-(TensorList&& a, const TensorList& b) {
  at::_foreach_sub_(a.tensors, b.tensors);
  return std::move(a);
}
TensorList operator*(const TensorList& a, const TensorList& b) {
  return {at::_foreach_mul(a.tensors, b.tensors)};
}
TensorList operator*(TensorList&& a, const TensorList& b) {
  at::_foreach_mul_(a.tensors, b.tensors);
  return std::move(a);
}
TensorList operator/(const TensorList& a, const TensorList& b) {
  return {at::_foreach_div(a.tensors, b.tensors)};
}
TensorList operator/(TensorList&& a, const TensorList& b) {
  at::_foreach_div_(a.tensors, b.tensors);
  return std::move(a);
}
TensorList operator+(const TensorList& a, double b) { return {at::_foreach_add(a.tensors, b)}; }
TensorList operator+(TensorList&& a, double b) {
  at::_foreach_add_(a.tensors, b);
  return std::move(a);
}
TensorList operator*(const TensorList& a, double b) { return {at::_foreach_mul(a.tensors, b)}; }
TensorList operator*(TensorList&& a, double b) {
  at::_foreach_mul_(a.tensors, b);
  return std::move(a);
}
TensorList operator*(double a, const TensorList& b) { return b * a; }
TensorList operator*(double a, TensorList&& b) { return std::move(b) * a; }
// The number is one of the device: for one of the host, kernels multiply by 1 / b, which rounds
// differently.
TensorList operator/(const TensorList& a, double b) {
  return one_by_one(a, [b](const Tensor& value) { return value / on_device(b, value); });
}
TensorList operator/(TensorList&& a, double b) {
  for (const Tensor& value : a.tensors) value.div_(on_device(b, value));
  return std::move(a);
}

TensorList operator*(const TensorList& a, const TensorNumber& b) {
  if (!b.on_device.defined()) return a * b.value;
#if TORCH_VERSION_MAJOR >= 2
  return {at::_foreach_mul(a.tensors, b.on_device)};
#else
  return one_by_one(a, [&](const Tensor& value) { return value * b.on_device; });
#endif
}
TensorList operator*(TensorList&& a, const TensorNumber& b) {
  if (!b.on_device.defined()) return std::move(a) * b.value;
#if TORCH_VERSION_MAJOR >= 2
  at::_foreach_mul_(a.tensors, b.on_device);
#else
  for (const Tensor& value : a.tensors) value.mul_(b.on_device);
#endif
  return std::move(a);
}
TensorList operator*(const TensorNumber& a, const TensorList& b) { return b * a; }
TensorList operator*(const TensorNumber& a, TensorList&& b) { return std::move(b) * a; }
TensorList operator/(const TensorList& a, const TensorNumber& b) {
  if (!b.on_device.defined()) return a / b.value;
  return one_by_one(a, [&](const Tensor& value) { return value / b.on_device; });
}
TensorList operator/(TensorList&& a, const TensorNumber& b) {
  if (!b.on_device.defined()) return std::move(a) / b.value;
  for (const Tensor& value : a.tensors) value.div_(b.on_device);
  return std::move(a);
}
TensorList operator+(TensorList&& a, const TensorNumber& b) {
  if (!b.on_device.defined()) return std::move(a) + b.value;
  for (const Tensor& value : a.tensors) value.add_(b.on_device);
  return std::move(a);
}

TensorList operator-(const TensorList& a) { return {at::_foreach_neg(a.tensors)}; }
TensorList operator-(TensorList&& a) {
  at::_foreach_neg_(a.tensors);
  return std::move(a);
}

TensorList inverse(const TensorList& values) { return {at::_foreach_reciprocal(values.tensors)}; }

TensorList square_root(const TensorList& values) { return {at::_foreach_sqrt(values.tensors)}; }

TensorList magnitude(const TensorList& values) { return {at::_foreach_abs(values.tensors)}; }

TensorList power_of(const TensorList& values, double exponent) {
  return one_by_one(values, [&](const Tensor& value) { return value.pow(exponent); });
}

TensorList sign_of(const TensorList& values) {
  return one_by_one(values, [](const Tensor& value) {
    return at::where(value == value, at::sign(value), value);
  });
}

TensorList larger(const TensorList& a, const TensorList& b) {
  TensorList results;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    results.tensors.push_back(at::where(a.tensors[i] >= b.tensors[i], a.tensors[i], b.tensors[i]));
  }
  return results;
}

TensorList clipped(const TensorList& values, double most) {
  return one_by_one(values, [&](const Tensor& value) { return value.clamp(-most, most); });
}

}  // namespace cohort::internal
