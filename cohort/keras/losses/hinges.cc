#include "cohort/keras/losses/hinges.h"

#include "cohort/keras/losses/matched_loss.h"

namespace cohort {
namespace internal {
namespace {

// Keras's rule: labels that are all 0 or 1 stand for -1 and 1. As an operation rather than a
// decision here, so that devices need not wait for it.
Tensor signs(const Tensor& labels) {
  const Tensor binary = labels.eq(0).logical_or(labels.eq(1)).all().to(labels.scalar_type());
  return labels + (labels - 1) * binary;
}

Tensor margins(const Tensor& y_true, const Tensor& y_pred) {
  return (1 - signs(y_true) * y_pred).clamp_min(0);
}

Tensor hinge(const Tensor& y_true, const Tensor& y_pred) {
  return margins(y_true, y_pred).mean(-1);
}

Tensor squared_hinge(const Tensor& y_true, const Tensor& y_pred) {
  return margins(y_true, y_pred).square().mean(-1);
}

Tensor categorical_hinge(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor right = (y_true * y_pred).sum(-1);
  const Tensor wrong = ((1 - y_true) * y_pred).amax(-1);
  return (wrong - right + 1).clamp_min(0);
}

}  // namespace
}  // namespace internal

namespace keras::losses {

Hinge::Hinge(const LossOptions& options)
    : Loss(internal::matched_loss(options, "hinge", internal::hinge)) {
  describe("Hinge");
}

SquaredHinge::SquaredHinge(const LossOptions& options)
    : Loss(internal::matched_loss(options, "squared_hinge", internal::squared_hinge)) {
  describe("SquaredHinge");
}

CategoricalHinge::CategoricalHinge(const LossOptions& options)
    : Loss(internal::matched_loss(options, "categorical_hinge", internal::categorical_hinge)) {
  describe("CategoricalHinge");
}

}  // namespace keras::losses
}  // namespace cohort
