#include "cohort/keras/base/activations.h"

#include <ATen/ops/elu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/silu.h>

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/named.h"
#include "cohort/keras/base/policy.h"
#include "cohort/ops/gelu.h"
#include "cohort/ops/kinks.h"

namespace cohort::keras::activations {
namespace {

Tensor softmax(const Tensor& x) {
  if (x.dim() < 2) {
    throw InvalidArgumentError(
        internal::str("softmax takes [batch, .., classes], but got a tensor of shape ",
                      internal::shape_str(x.sizes())));
  }
  return x.softmax(-1);
}

// libtorch 1.13 has none of bfloat16 on CPUs.
Tensor mish(const Tensor& x) {
  return x.is_cpu() ? at::mish(internal::widened(x)).to(x.scalar_type()) : at::mish(x);
}

using Function = Tensor (*)(const Tensor&);
constexpr std::pair<std::string_view, Function> kFunctions[] = {
    {"linear", nullptr},
    {"relu", [](const Tensor& x) { return x.relu(); }},
    {"relu6", [](const Tensor& x) { return at::hardtanh(x, 0, 6); }},
    {"elu", [](const Tensor& x) { return at::elu(x); }},
    {"selu", internal::selu},
    {"gelu", internal::gelu},
    {"exponential", [](const Tensor& x) { return x.exp(); }},
    {"hard_sigmoid", [](const Tensor& x) { return (x * 0.2 + 0.5).clamp(0, 1); }},
    {"mish", mish},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"softmax", softmax},
    {"softplus", internal::softplus},
    {"softsign", [](const Tensor& x) { return x / (x.abs() + 1); }},
    {"swish", [](const Tensor& x) { return at::silu(x); }},
    {"silu", [](const Tensor& x) { return at::silu(x); }},
    {"tanh", [](const Tensor& x) { return x.tanh(); }},
};

}  // namespace

Activation::Activation(std::string_view name) : name_(name) {
  std::vector<std::string_view> known;
  for (const auto& [candidate, function] : kFunctions) {
    if (candidate == name) {
      if (function != nullptr) fn_ = function;
      return;
    }
    known.push_back(candidate);
  }
  internal::throw_unknown_name("activation", name, {known, known});
}

}  // namespace cohort::keras::activations
