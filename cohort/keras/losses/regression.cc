#include "cohort/keras/losses/regression.h"

#include <ATen/ops/where.h>

#include <cmath>
#include <numbers>

#include "cohort/core/error.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/losses/matched_loss.h"
#include "cohort/ops/kinks.h"

namespace cohort {
namespace internal {
namespace {

constexpr double kLeastValue = keras::backend::kEpsilon;

Tensor mean_squared_error(const Tensor& y_true, const Tensor& y_pred) {
  return (y_pred - y_true).square().mean(-1);
}

Tensor mean_absolute_error(const Tensor& y_true, const Tensor& y_pred) {
  return (y_pred - y_true).abs().mean(-1);
}

Tensor mean_absolute_percentage_error(const Tensor& y_true, const Tensor& y_pred) {
  return ((y_true - y_pred) / y_true.abs().clamp_min(kLeastValue)).abs().mean(-1) * 100;
}

Tensor mean_squared_logarithmic_error(const Tensor& y_true, const Tensor& y_pred) {
  const auto logarithm = [](const Tensor& x) { return (x.clamp_min(kLeastValue) + 1).log(); };
  return (logarithm(y_pred) - logarithm(y_true)).square().mean(-1);
}

Tensor log_cosh(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor error = y_pred - y_true;
  return (error + softplus(error * -2.0) - std::numbers::ln2).mean(-1);
}

Tensor huber(const Tensor& y_true, const Tensor& y_pred, double delta) {
  const Tensor error = y_pred - y_true;
  const Tensor size = error.abs();
  return at::where(size <= delta, error.square() * 0.5, size * delta - 0.5 * delta * delta)
      .mean(-1);
}

// Vectors of length 1; a vector of zeros stays as it is.
Tensor unit_vectors(const Tensor& x, int64_t axis) {
  constexpr double kLeastSquare = 1e-12;
  return x * x.square().sum(axis, /*keepdim=*/true).clamp_min(kLeastSquare).rsqrt();
}

}  // namespace

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t axis, const char* what) {
  if (axis < -a.dim() || axis >= a.dim()) {
    throw InvalidArgumentError(
        str(what, ": axis ", axis, " is none of shape ", shape_str(a.sizes())));
  }
  return (unit_vectors(a, axis) * unit_vectors(b, axis)).sum(axis);
}

}  // namespace internal

namespace keras::losses {
MeanSquaredError::MeanSquaredError(const LossOptions& options)
    : Loss(internal::matched_loss(options, "mean_squared_error", internal::mean_squared_error)) {
  describe("MeanSquaredError");
}

MeanAbsoluteError::MeanAbsoluteError(const LossOptions& options)
    : Loss(internal::matched_loss(options, "mean_absolute_error", internal::mean_absolute_error)) {
  describe("MeanAbsoluteError");
}

MeanAbsolutePercentageError::MeanAbsolutePercentageError(const LossOptions& options)
    : Loss(internal::matched_loss(options, "mean_absolute_percentage_error",
                                  internal::mean_absolute_percentage_error)) {
  describe("MeanAbsolutePercentageError");
}

MeanSquaredLogarithmicError::MeanSquaredLogarithmicError(const LossOptions& options)
    : Loss(internal::matched_loss(options, "mean_squared_logarithmic_error",
                                  internal::mean_squared_logarithmic_error)) {
  describe("MeanSquaredLogarithmicError");
}

LogCosh::LogCosh(const LossOptions& options)
    : Loss(internal::matched_loss(options, "log_cosh", internal::log_cosh)) {
  describe("LogCosh");
}

Huber::Huber(const HuberOptions& options)
    : Loss(internal::matched_loss(
          {.reduction = options.reduction, .name = options.name}, "huber_loss",
          [delta = options.delta](const Tensor& y_true, const Tensor& y_pred) {
            return internal::huber(y_true, y_pred, delta);
          })) {
  if (!(options.delta > 0 && std::isfinite(options.delta))) {
    throw InvalidArgumentError(
        internal::str("Huber: delta is ", options.delta, "; it must be a finite number above 0"));
  }
  describe("Huber", Config().set("delta", options.delta));
}

CosineSimilarity::CosineSimilarity(const CosineSimilarityOptions& options)
    : Loss(internal::matched_loss(
          {.reduction = options.reduction, .name = options.name}, "cosine_similarity",
          [options](const Tensor& y_true, const Tensor& y_pred) {
            return internal::cosine_similarity(y_true, y_pred, options.axis, options.name.c_str())
                .neg();
          })) {
  describe("CosineSimilarity", Config().set("axis", options.axis));
}

}  // namespace keras::losses
}  // namespace cohort
