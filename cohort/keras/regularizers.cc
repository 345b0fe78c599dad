#include "cohort/keras/regularizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cmath>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/named.h"
#include "cohort/keras/saving/config_json.h"
#include "cohort/ops/gradient_tape.h"

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

// Of factor * sum of x^2 by x.
class SumOfSquaresNode final : public torch::autograd::Node {
 public:
  SumOfSquaresNode(const Tensor& x, double factor) : x_(x, /*is_output=*/false), factor_(factor) {}

  std::string name() const override { return "SumOfSquares"; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    if (!gradients[0].defined()) return {Tensor()};
    return {x_.unpack() * times(gradients[0], 2 * factor_)};
  }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    x_.reset_data();
  }

 private:
  torch::autograd::SavedVariable x_;
  const double factor_;
};

// factor * sum of x^2, as one operation each way: weights are penalised in every step.
Tensor sum_of_squares(const Tensor& x, double factor) {
  Tensor sum;
  {
    const NoGradient no_gradient;
    const bool has_dot = x.scalar_type() == float32 || x.scalar_type() == float64;
    const Tensor flat = has_dot ? x.reshape({-1}) : Tensor();
    sum = times(has_dot ? at::dot(flat, flat) : x.square().sum(), factor);
  }
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    const std::shared_ptr<torch::autograd::Node> node(new SumOfSquaresNode(x, factor),
                                                      torch::autograd::deleteNode);
    node->set_next_edges(torch::autograd::collect_next_edges(x));
    torch::autograd::set_history(sum, node);
  }
  return sum;
}

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
    const Tensor l2_penalty = sum_of_squares(x, l2_);
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
    const std::vector<std::string_view> known = {"l1", "l2", "l1_l2"};
    internal::throw_unknown_name("regularizer", name, {known, known});
  }
}

}  // namespace cohort::keras::regularizers
