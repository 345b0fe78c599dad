#include "cohort/distribute/gradients/device_clip.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <limits>

namespace cohort::internal {
namespace {

// clip_factor of each norm.
Tensor clip_factors(const Tensor& norms, double most) {
  return at::where(norms.le(most), at::ones_like(norms), at::full_like(norms, most) / norms);
}

}  // namespace

Tensor clip_on_devices(std::vector<Tensor>& sums, const UpdateStep& step) {
  std::vector<Tensor> norms;
  for (const Tensor& sum : sums) {
    if (!sum.defined()) continue;
    const Tensor norm = at::linalg_vector_norm(sum, 2, {}, false, at::kDouble);
    norms.push_back(norms.empty() ? norm : norm.to(norms[0].device(), /*non_blocking=*/true));
  }
  if (norms.empty()) return {};
  Tensor all = at::stack(norms);
  if (step.factor != 1) all = all * step.factor;
  if (step.clipnorm > 0) {
    const Tensor factors = clip_factors(all, step.clipnorm);
    int64_t next = 0;
    for (Tensor& sum : sums) {
      if (!sum.defined()) continue;
      // Not in place: it may be a replica's gradient.
      sum = sum * factors.select(0, next++).to(sum.device(), /*non_blocking=*/true);
    }
  }
  if (step.global_clipnorm == 0) return {};
  const Tensor norm = all.square().sum().sqrt();
  const Tensor factor = clip_factors(norm, step.global_clipnorm)
                            .masked_fill(norm.isinf(), std::numeric_limits<double>::quiet_NaN());
  return step.factor == 1 ? factor : factor * step.factor;
}

}  // namespace cohort::internal
