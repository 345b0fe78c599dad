#include "cohort/ops/kinks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>

namespace cohort::internal {
namespace {

bool needs_gradient(const Tensor& x, const Tensor& y) {
  return at::GradMode::is_enabled() && (x.requires_grad() || y.requires_grad());
}

}  // namespace

Tensor maximum(const Tensor& x, const Tensor& y) {
  if (!needs_gradient(x, y)) return at::maximum(x, y);
  return at::where(x.ge(y).logical_or(x.isnan()), x, y);
}

Tensor minimum(const Tensor& x, const Tensor& y) {
  if (!needs_gradient(x, y)) return at::minimum(x, y);
  return at::where(x.le(y).logical_or(x.isnan()), x, y);
}

Tensor selu(const Tensor& x) {
  constexpr double kScale = 1.0507009873554805;
  const Tensor result = at::selu(x);
  return needs_gradient(x, x) ? at::where(x.eq(0), x * kScale, result) : result;
}

Tensor softplus(const Tensor& x) {
  constexpr double kThreshold = 40;  // beyond it, x itself: e^-40 is less than half of x's last bit
  return at::softplus(x, /*beta=*/1, kThreshold);
}

// max(x, 0) - x z + log(1 + exp(-|x|)): no exponential of a large number. Both of the kinks at 0
// are made by one choice, so that their slopes add up to sigmoid's 1/2.
Tensor sigmoid_crossentropy(const Tensor& labels, const Tensor& logits) {
  const Tensor above = logits.ge(0);
  const Tensor exponent = at::where(above, logits.neg(), logits);
  return at::where(above, logits, 0) - logits * labels + exponent.exp().log1p();
}

}  // namespace cohort::internal
