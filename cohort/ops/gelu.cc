#include "cohort/ops/gelu.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numbers>

namespace cohort::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// The slope by operations that libtorch differentiates further: with P the share below x and p its
// density, the slope of x P(x) is P(x) + x p(x).
Tensor recorded_slope(const Tensor& x) {
  constexpr double kInverseSqrt2 = std::numbers::sqrt2 / 2;
  constexpr double kDensityAtZero = kInverseSqrt2 * std::numbers::inv_sqrtpi;  // 1 / sqrt(2 pi)
  const Tensor share = (x * -kInverseSqrt2).erfc() * 0.5;
  return share + x * (x * x * -0.5).exp() * kDensityAtZero;
}

struct Gelu : Function<Gelu> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return at::gelu(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor x = context->get_saved_variables()[0];
    const Tensor& gradient = gradients[0];
    if (at::GradMode::is_enabled()) return {gradient * recorded_slope(x)};
    // libtorch leaves oneDNN alone if x has gaps or another order.
    return {at::gelu_backward(x.is_contiguous() ? gradient.contiguous() : gradient, x)};
  }
};

}  // namespace

Tensor gelu(const Tensor& x) {
  const bool records = at::GradMode::is_enabled() && x.requires_grad();
  return records ? Gelu::apply(x) : at::gelu(x);
}

}  // namespace cohort::internal
