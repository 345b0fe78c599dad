#include "cohort/optim/constraint.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdlib>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::optim {
namespace {

Tensor with_norms(const Tensor& value, const Projection& wanted) {
  const Tensor norms = value.square().sum(wanted.axes, /*keepdim=*/true).sqrt_();
  Tensor moved = norms.clamp(wanted.least, wanted.most);
  if (wanted.rate != 1) moved = wanted.rate * moved + (1 - wanted.rate) * norms;
  return value * (moved / (norms + wanted.epsilon));
}

// For each pixel of a square kernel, in Keras 2.15's order, the place on the diagonal whose value
// it gets: rings take the values below and to the right of the middle, the middle itself the one
// above.
std::vector<int64_t> ring_sources(int64_t size) {
  const int64_t half = size / 2;
  const bool is_odd = size % 2 == 1;
  const auto distance = [&](int64_t at) {
    return is_odd || at >= half ? std::abs(at - half) : half - 1 - at;
  };
  std::vector<int64_t> sources;
  for (int64_t row = 0; row < size; ++row) {
    for (int64_t column = 0; column < size; ++column) {
      const int64_t ring = std::max(distance(row), distance(column));
      const int64_t place = ring == 0 ? half - 1 : half + ring - (is_odd ? 1 : 0);
      sources.push_back(place * (size + 1));
    }
  }
  return sources;
}

Tensor radial(const Tensor& value) {
  const Tensor sources = at::tensor(ring_sources(value.size(0)), at::kLong).to(value.device());
  return value.flatten(0, 1).index_select(0, sources).view(value.sizes());
}

Tensor projected(const Tensor& value, const Projection& wanted) {
  switch (wanted.kind) {
    case Projection::Kind::kNonNegative:
      return value * value.ge(0);
    case Projection::Kind::kNorm:
      return with_norms(value, wanted);
    case Projection::Kind::kRadial:
      return radial(value);
  }
  throw InternalError("a projection of an unknown kind");
}

}  // namespace

void check_projection(const Projection& projection, at::IntArrayRef shape,
                      const std::string& variable) {
  const auto rank = static_cast<int64_t>(shape.size());
  const auto fail = [&](const auto&... why) {
    throw InvalidArgumentError(internal::str("the constraint of '", variable, "', of shape ",
                                             internal::shape_str(shape), ", ", why...));
  };
  if (projection.kind == Projection::Kind::kRadial &&
      (rank != 4 || shape[0] != shape[1] || shape[0] < 2)) {
    fail("is for kernels of images [size, size, channels, filters] of at least 2 x 2 pixels");
  }
  if (projection.kind != Projection::Kind::kNorm) return;
  std::vector<int64_t> axes;
  for (const int64_t axis : projection.axes) {
    if (axis < -rank || axis >= rank) fail("takes norms over axis ", axis, ", which it has not");
    axes.push_back(axis < 0 ? axis + rank : axis);
  }
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end() || axes.empty()) {
    fail("must name one axis or more, and none twice");
  }
}

bool spans_rows(const Projection& projection, at::IntArrayRef shape) {
  if (projection.kind == Projection::Kind::kRadial) return true;
  const auto rank = static_cast<int64_t>(shape.size());
  return std::any_of(projection.axes.begin(), projection.axes.end(),
                     [&](int64_t axis) { return axis == 0 || axis == -rank; });
}

Tensor Constraint::operator()(const Tensor& value) const {
  const at::NoGradGuard no_grad;
  if (projection_ != nullptr) {
    check_projection(*projection_, value.sizes(), "a variable");
    return projected(value, *projection_);
  }
  const Tensor result = fn_(value);
  if (result.defined() && result.sizes() == value.sizes()) return result;
  throw InvalidArgumentError(internal::str(
      "a constraint was given a variable of shape ", internal::shape_str(value.sizes()),
      " and gave ", result.defined() ? internal::shape_str(result.sizes()) : "an undefined tensor",
      "; it must give the same shape"));
}

}  // namespace cohort::optim
