#include "cohort/keras/activations.h"

#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

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

using Function = Tensor (*)(const Tensor&);
constexpr std::pair<std::string_view, Function> kFunctions[] = {
    {"linear", nullptr},
    {"relu", [](const Tensor& x) { return x.relu(); }},
    {"relu6", [](const Tensor& x) { return at::hardtanh(x, 0, 6); }},
    {"elu", [](const Tensor& x) { return at::elu(x); }},
    {"selu", [](const Tensor& x) { return at::selu(x); }},
    {"gelu", [](const Tensor& x) { return at::gelu(x); }},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"softmax", softmax},
    {"softplus", [](const Tensor& x) { return at::softplus(x); }},
    {"swish", [](const Tensor& x) { return at::silu(x); }},
    {"silu", [](const Tensor& x) { return at::silu(x); }},
    {"tanh", [](const Tensor& x) { return x.tanh(); }},
};

}  // namespace

Activation::Activation(std::string_view name) : name_(name) {
  std::string known;
  for (const auto& [candidate, function] : kFunctions) {
    if (candidate == name) {
      if (function != nullptr) fn_ = function;
      return;
    }
    known += internal::str(known.empty() ? "" : ", ", candidate);
  }
  throw InvalidArgumentError(
      internal::str("no activation is called ", internal::quoted(name), "; there are: ", known));
}

}  // namespace cohort::keras::activations
