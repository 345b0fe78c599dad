#include "cohort/keras/losses/divergences.h"

#include "cohort/keras/base/backend.h"
#include "cohort/keras/losses/matched_loss.h"

namespace cohort {
namespace internal {
namespace {

Tensor kl_divergence(const Tensor& y_true, const Tensor& y_pred) {
  const Tensor p = y_true.clamp(keras::backend::kEpsilon, 1);
  const Tensor q = y_pred.clamp(keras::backend::kEpsilon, 1);
  return (p * (p / q).log()).sum(-1);
}

Tensor poisson(const Tensor& y_true, const Tensor& y_pred) {
  return (y_pred - y_true * (y_pred + keras::backend::kEpsilon).log()).mean(-1);
}

}  // namespace
}  // namespace internal

namespace keras::losses {

KLDivergence::KLDivergence(const LossOptions& options)
    : Loss(internal::matched_loss(options, "kl_divergence", internal::kl_divergence)) {
  describe("KLDivergence");
}

Poisson::Poisson(const LossOptions& options)
    : Loss(internal::matched_loss(options, "poisson", internal::poisson)) {
  describe("Poisson");
}

}  // namespace keras::losses
}  // namespace cohort
