#include "cohort/ops/clip.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/ops/scaled.h"

namespace cohort {
namespace {

using internal::describe;
using internal::libtorch_call;
using internal::scaled;
using internal::str;

Tensor sum_of_squares(const char* what, const Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type())) {
    throw InvalidArgumentError(
        str(what, " needs floating-point tensors, but got ", describe(tensor)));
  }
  return (tensor.is_sparse() ? tensor.coalesce().values() : tensor).square().sum();
}

void check_clip_norm(double clip_norm) {
  if (clip_norm > 0) return;
  throw InvalidArgumentError(str("clip_norm is ", clip_norm, "; it must be above 0"));
}

void check_integers(const char* what, const Tensor& values) {
  if (values.defined() && at::isIntegralType(values.scalar_type(), false)) return;
  throw InvalidArgumentError(str(what, " needs integers, but got ", describe(values)));
}

}  // namespace

Tensor global_norm(const std::vector<Tensor>& tensors) {
  return libtorch_call("global_norm", [&] {
    std::vector<Tensor> sums;
    for (const Tensor& tensor : tensors) {
      if (tensor.defined()) sums.push_back(sum_of_squares("global_norm", tensor));
    }
    if (sums.empty()) throw InvalidArgumentError("global_norm of no tensor");
    return at::stack(sums).sum().sqrt();
  });
}

std::pair<std::vector<Tensor>, Tensor> clip_by_global_norm(const std::vector<Tensor>& tensors,
                                                           double clip_norm,
                                                           const std::optional<Tensor>& use_norm) {
  check_clip_norm(clip_norm);
  const Tensor norm = use_norm ? *use_norm : global_norm(tensors);
  return libtorch_call("clip_by_global_norm", [&] {
    // x - x is NaN where x is infinite or NaN, else 0.
    const Tensor scale = clip_norm / norm.clamp_min(clip_norm) + (norm - norm);
    std::vector<Tensor> clipped;
    for (const Tensor& tensor : tensors) {
      clipped.push_back(tensor.defined() ? scaled(tensor, scale.to(tensor.scalar_type())) : tensor);
    }
    return std::pair(std::move(clipped), norm);
  });
}

Tensor clip_by_norm(const Tensor& tensor, double clip_norm) {
  check_clip_norm(clip_norm);
  return libtorch_call("clip_by_norm", [&] {
    const Tensor squares = sum_of_squares("clip_by_norm", tensor);
    // The root of 0 has no gradient, but clipping does: a tensor of zeros stays as it is.
    const Tensor none = squares == 0;
    const Tensor norm = squares.masked_fill(none, 1).sqrt().masked_fill(none, 0);
    return scaled(tensor, clip_norm / norm.clamp_min(clip_norm));
  });
}

namespace math {

Tensor bincount(const Tensor& values, int64_t minlength) {
  check_integers("bincount", values);
  return libtorch_call("bincount",
                       [&] { return at::bincount(values.reshape({-1}), {}, minlength); });
}

Tensor confusion_matrix(const Tensor& labels, const Tensor& predictions,
                        std::optional<int64_t> num_classes) {
  check_integers("confusion_matrix", labels);
  check_integers("confusion_matrix", predictions);
  if (labels.sizes() != predictions.sizes()) {
    throw InvalidArgumentError(str("confusion_matrix: the labels are ", describe(labels),
                                   ", but the predictions ", describe(predictions)));
  }
  return libtorch_call("confusion_matrix", [&] {
    const Tensor truth = labels.reshape({-1}).to(int64);
    const Tensor predicted = predictions.reshape({-1}).to(int64);
    const bool none = truth.numel() == 0;
    const int64_t most =
        none ? -1 : std::max(truth.max().item<int64_t>(), predicted.max().item<int64_t>());
    const int64_t least =
        none ? 0 : std::min(truth.min().item<int64_t>(), predicted.min().item<int64_t>());
    const int64_t classes = num_classes.value_or(most + 1);
    if (least < 0 || most >= classes) {
      throw InvalidArgumentError(str("confusion_matrix: the class ", least < 0 ? least : most,
                                     " is outside of [0, ", classes, ")"));
    }
    return at::bincount(truth * classes + predicted, {}, classes * classes)
        .reshape({classes, classes})
        .to(int32);
  });
}

}  // namespace math
}  // namespace cohort
