#include "cohort/ops/nn_ops.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/unbind.h>
#include <ATen/ops/zeros_like.h>

#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/ops/class_rows.h"
#include "cohort/ops/kinks.h"
#include "cohort/ops/random.h"

namespace cohort {
namespace {

using internal::are_small_class_rows;
using internal::crossentropy_of_rows;
using internal::describe;
using internal::libtorch_call;
using internal::str;

void check_alike(const char* what, const Tensor& labels, const Tensor& logits) {
  if (labels.defined() && logits.defined() && labels.sizes() == logits.sizes()) return;
  throw InvalidArgumentError(str("nn::", what, ": labels ", describe(labels), " and logits ",
                                 describe(logits), " differ in shape"));
}

void check_floating(const char* what, const Tensor& x) {
  if (x.defined() && x.is_floating_point()) return;
  throw InvalidArgumentError(
      str("nn::", what, " takes a tensor of a floating dtype, but got ", describe(x)));
}

// All axes of x, for functions of libtorch that do not take none for all.
std::vector<int64_t> all_axes_of(const Tensor& x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.dim()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

}  // namespace

Tensor stop_gradient(const Tensor& x) {
  return libtorch_call("stop_gradient", [&] { return x.detach(); });
}

Tensor cumsum(const Tensor& x, int64_t axis) {
  return libtorch_call("cumsum", [&] { return at::cumsum(x, axis, x.scalar_type()); });
}

Tensor sort(const Tensor& x, int64_t axis) {
  return libtorch_call("sort", [&] { return std::get<0>(at::sort(x, axis)); });
}

std::pair<Tensor, Tensor> top_k(const Tensor& x, int64_t k) {
  return libtorch_call("top_k", [&] {
    // Unlike at::topk it gives the first of equal elements first.
    const auto [values, places] = at::sort(x, /*stable=*/true, -1, /*descending=*/true);
    return std::pair(values.narrow(-1, 0, k), places.narrow(-1, 0, k).to(int32));
  });
}

std::vector<Tensor> unstack(const Tensor& x, int64_t axis) {
  return libtorch_call("unstack", [&] { return at::unbind(x, axis); });
}

Tensor pad(const Tensor& x, const std::vector<std::pair<int64_t, int64_t>>& paddings,
           double value) {
  if (!x.defined() || static_cast<int64_t>(paddings.size()) != x.dim()) {
    throw InvalidArgumentError(str("pad got ", paddings.size(), " paddings for ", describe(x),
                                   "; each dimension needs one"));
  }
  std::vector<int64_t> from_last;
  for (size_t i = paddings.size(); i-- > 0;) {
    from_last.insert(from_last.end(), {paddings[i].first, paddings[i].second});
  }
  return libtorch_call("pad", [&] { return at::constant_pad_nd(x, from_last, value); });
}

namespace nn {

Tensor relu(const Tensor& x) {
  return libtorch_call("nn::relu", [&] { return at::relu(x); });
}

Tensor leaky_relu(const Tensor& x, double alpha) {
  return libtorch_call("nn::leaky_relu", [&] { return at::leaky_relu(x, alpha); });
}

Tensor softplus(const Tensor& x) {
  return libtorch_call("nn::softplus", [&] { return internal::softplus(x); });
}

Tensor softmax(const Tensor& logits, int64_t axis) {
  return libtorch_call("nn::softmax", [&] { return at::softmax(logits, axis); });
}

Tensor log_softmax(const Tensor& logits, int64_t axis) {
  return libtorch_call("nn::log_softmax", [&] { return at::log_softmax(logits, axis); });
}

Tensor dropout(const Tensor& x, double rate) {
  if (!(rate >= 0 && rate < 1)) {
    throw InvalidArgumentError(str("nn::dropout: rate is ", rate, "; it must be in [0, 1)"));
  }
  check_floating("dropout", x);
  if (rate == 0) return x;
  const Tensor kept = random::uniform(x.sizes()).ge(rate).to(x.device(), x.scalar_type());
  return x * kept / (1 - rate);
}

Tensor sigmoid_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  check_alike("sigmoid_cross_entropy_with_logits", labels, logits);
  return libtorch_call("nn::sigmoid_cross_entropy_with_logits",
                       [&] { return internal::sigmoid_crossentropy(labels, logits); });
}

Tensor softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits, int64_t axis) {
  check_alike("softmax_cross_entropy_with_logits", labels, logits);
  return libtorch_call("nn::softmax_cross_entropy_with_logits",
                       [&] { return -(labels * at::log_softmax(logits, axis)).sum({axis}); });
}

Tensor sparse_softmax_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits) {
  constexpr const char* kWhat = "nn::sparse_softmax_cross_entropy_with_logits";
  const bool fit = labels.defined() && logits.defined() && logits.dim() == labels.dim() + 1 &&
                   logits.sizes().slice(0, labels.dim()) == labels.sizes() &&
                   at::isIntegralType(labels.scalar_type(), /*includeBool=*/false);
  if (!fit) {
    throw InvalidArgumentError(str(kWhat,
                                   ": integer labels [..] and logits [.., classes] are "
                                   "needed, but got ",
                                   describe(labels), " and ", describe(logits)));
  }
  const int64_t classes = logits.size(-1);
  if (are_small_class_rows(labels, logits)) {
    const Tensor losses = crossentropy_of_rows(labels, logits);
    if (losses.defined()) return losses;
  }
  if (labels.numel() > 0 &&
      (labels.min().item<int64_t>() < 0 || labels.max().item<int64_t>() >= classes)) {
    throw InvalidArgumentError(str(kWhat, ": labels from ", labels.min().item<int64_t>(), " to ",
                                   labels.max().item<int64_t>(), " for ", classes, " classes"));
  }
  return libtorch_call(kWhat, [&] {
    const Tensor places = labels.to(int64).unsqueeze(-1);
    return -at::log_softmax(logits, -1).gather(-1, places).squeeze(-1);
  });
}

Tensor weighted_cross_entropy_with_logits(const Tensor& labels, const Tensor& logits,
                                          const internal::Operand& pos_weight) {
  check_alike("weighted_cross_entropy_with_logits", labels, logits);
  check_floating("weighted_cross_entropy_with_logits", logits);
  return libtorch_call("nn::weighted_cross_entropy_with_logits", [&] {
    const Tensor log_weight = 1 + (pos_weight.tensor() - 1) * labels;
    // log(1 + exp(-x)) of any x without overflow.
    const Tensor softplus = at::log1p((-logits.abs()).exp()) + at::relu(-logits);
    return (1 - labels) * logits + log_weight * softplus;
  });
}

std::pair<Tensor, Tensor> moments(const Tensor& x, at::IntArrayRef axes, MomentsOptions options) {
  check_floating("moments", x);
  return libtorch_call("nn::moments", [&]() -> std::pair<Tensor, Tensor> {
    // Each element is its own mean without axes, in TensorFlow, too.
    if (axes.empty()) return {x, at::zeros_like(x)};
    const Tensor wide = x.scalar_type() == DType::Half ? x.to(float32) : x;
    const Tensor mean = wide.mean(axes, /*keepdim=*/true);
    // The variance's gradient by the mean is 0.
    const Tensor variance = (wide - mean.detach()).square().mean(axes, options.keepdims);
    const Tensor shaped = options.keepdims ? mean : mean.reshape(variance.sizes());
    return {shaped.to(x.scalar_type()), variance.to(x.scalar_type())};
  });
}

Tensor l2_normalize(const Tensor& x, const L2NormalizeOptions& options) {
  check_floating("l2_normalize", x);
  return libtorch_call("nn::l2_normalize", [&] {
    const std::vector<int64_t> axes = options.axis.empty() ? all_axes_of(x) : options.axis;
    const Tensor squares = x.square().sum(axes, /*keepdim=*/true);
    return x * at::rsqrt(maximum(squares, options.epsilon));
  });
}

Tensor l2_loss(const Tensor& x) {
  return libtorch_call("nn::l2_loss", [&] { return (x * x).sum() / 2; });
}

}  // namespace nn
}  // namespace cohort
