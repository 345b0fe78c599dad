#include "cohort/keras/regularizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/saving/config_json.h"

namespace cohort::keras::regularizers {
namespace {

constexpr double kDefaultFactor = 0.01;

// number * factor, of a tensor of one number. Without a gradient a float on the host is multiplied
// where it lies: an operation of libtorch's with a number of another dtype is two, of some 4 us each.
Tensor times(const Tensor& number, double factor) {
  if (number.scalar_type() != float32 || !number.is_cpu() || at::GradMode::is_enabled()) {
    return number * factor;
  }
  Tensor product = at::empty({}, number.options());
  *product.data_ptr<float>() = number.item<float>() * static_cast<float>(factor);
  return product;
}

// factor * sum of x^2, as one operation each way: weights are penalised in every step.
struct SumOfSquares : torch::autograd::Function<SumOfSquares> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& x, double factor) {
    context->save_for_backward({x});
    context->saved_data["factor"] = factor;
    const bool has_dot = x.scalar_type() == float32 || x.scalar_type() == float64;
    const Tensor flat = x.reshape({-1});
    return times(has_dot ? at::dot(flat, flat) : flat.square().sum(), factor);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const double factor = context->saved_data["factor"].toDouble();
    return {context->get_saved_variables()[0] * times(gradients[0], 2 * factor), Tensor()};
  }
};

}  // namespace

L1L2::L1L2(double l1, double l2) : l1_(l1), l2_(l2) {
  if (!std::isfinite(l1) || !std::isfinite(l2)) {
    throw InvalidArgumentError(
        internal::str("a regularizer's factors must be finite, but l1 is ", l1, " and l2 is ", l2));
  }
}

Tensor L1L2::operator()(const Tensor& x) const {
  Tensor penalty;
  if (l1_ != 0) penalty = x.abs().sum() * l1_;
  if (l2_ != 0) {
    const Tensor l2_penalty = SumOfSquares::apply(x, l2_);
    penalty = penalty.defined() ? penalty + l2_penalty : l2_penalty;
  }
  return penalty.defined() ? penalty : at::zeros({}, x.options());
}

Config L1L2::serialize() const {
  if (l1_ == 0) return internal::serialized("keras.regularizers", "L2", {{"l2", l2_}});
  if (l2_ == 0) return internal::serialized("keras.regularizers", "L1", {{"l1", l1_}});
  return internal::serialized("keras.regularizers", "L1L2", {{"l1", l1_}, {"l2", l2_}});
}

std::optional<Config> Regularizer::serialize() const {
  if (config_ == nullptr) return std::nullopt;
  return *config_;
}

Regularizer::Regularizer(std::string_view name) {
  if (name == "l1") {
    *this = L1();
  } else if (name == "l2") {
    *this = L2();
  } else if (name == "l1_l2") {
    *this = L1L2(kDefaultFactor, kDefaultFactor);
  } else {
    throw InvalidArgumentError(internal::str("no regularizer is called ", internal::quoted(name),
                                             "; there are: l1, l2, l1_l2"));
  }
}

}  // namespace cohort::keras::regularizers
