#include "cohort/keras/losses/focal.h"

#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>

#include <memory>

#include "cohort/core/error.h"
#include "cohort/keras/base/backend.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/logits.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/losses/known_predictions.h"

namespace cohort {
namespace internal {
namespace {

using keras::losses::BinaryFocalCrossentropyOptions;
using keras::losses::CategoricalFocalCrossentropyOptions;
using keras::losses::FocalAlpha;

void check_axis(const char* what, int64_t axis, const Tensor& predictions) {
  if (axis >= -predictions.dim() && axis < predictions.dim()) return;
  throw InvalidArgumentError(
      str(what, ": axis ", axis, " is none of predictions ", describe(predictions)));
}

// The factor takes the probabilities as they are; only the crossentropy goes back to their logits.
Tensor binary_focal(const Tensor& labels, const Tensor& predictions,
                    const BinaryFocalCrossentropyOptions& options, ScoreWatch& watch) {
  const char* what = options.name.c_str();
  const Predictions known =
      best_known(predictions, logits_of_sigmoid(predictions), options.from_logits, what);
  auto [y, scores] = match_shapes(labels, known.values, what);
  check_axis(what, options.axis, scores);
  if (options.label_smoothing != 0) {
    y = y * (1 - options.label_smoothing) + 0.5 * options.label_smoothing;
  }
  if (!known.are_logits) watch.look(scores, what);
  const Tensor p = known.are_logits ? scores.sigmoid() : scores;
  const Tensor of_true_class = y * p + (1 - y) * (1 - p);
  Tensor losses = at::pow(1 - of_true_class, options.gamma) *
                  crossentropy_of_elements(y, {scores, known.are_logits});
  if (options.apply_class_balancing) {
    losses = (y * options.alpha + (1 - y) * (1 - options.alpha)) * losses;
  }
  return losses.mean(options.axis);
}

Tensor weigh_classes(const Tensor& losses, const FocalAlpha& alpha, const char* what) {
  const std::vector<double>& weights = alpha.weights();
  if (!alpha.is_list()) return losses * weights[0];
  if (static_cast<int64_t>(weights.size()) != losses.size(-1)) {
    throw InvalidArgumentError(str(what, ": alpha has ", weights.size(),
                                   " weights, but the last dimension of predictions ",
                                   describe(losses), " is ", losses.size(-1), " classes"));
  }
  return losses * at::tensor(weights, losses.options().requires_grad(false));
}

Tensor categorical_focal(const Tensor& labels, const Tensor& predictions,
                         const CategoricalFocalCrossentropyOptions& options, ScoreWatch& watch) {
  const char* what = options.name.c_str();
  if (are_class_numbers(labels, predictions)) {
    throw InvalidArgumentError(str(what, ": labels ", describe(labels), " do not fit predictions ",
                                   describe(predictions),
                                   "; they must be one-hot, nn::one_hot(labels, classes)"));
  }
  const Predictions known =
      best_known(predictions, logits_of_softmax(predictions), options.from_logits, what);
  auto [y, p] = match_shapes(labels, known.values, what);
  check_axis(what, options.axis, p);
  if (options.label_smoothing != 0) {
    y = y * (1 - options.label_smoothing) +
        options.label_smoothing / static_cast<double>(p.size(-1));
  }
  if (known.are_logits) {
    p = p.softmax(options.axis);
  } else {
    watch.look(p, what, /*are_shares=*/true);
  }
  constexpr double kEpsilon = keras::backend::kEpsilon;
  p = (p / p.sum(options.axis, /*keepdim=*/true)).clamp(kEpsilon, 1 - kEpsilon);
  const Tensor factors = weigh_classes(at::pow(1 - p, options.gamma), options.alpha, what);
  return (factors * y * p.log()).sum(options.axis).neg();
}

keras::Config focal_config(const CategoricalFocalCrossentropyOptions& options) {
  const std::vector<double>& weights = options.alpha.weights();
  return ConfigData::config_of(
      {{"alpha", options.alpha.is_list() ? Json(weights) : Json(weights[0])},
       {"gamma", options.gamma},
       {"from_logits", options.from_logits},
       {"label_smoothing", options.label_smoothing},
       {"axis", options.axis}});
}

}  // namespace
}  // namespace internal

namespace keras::losses {

BinaryFocalCrossentropy::BinaryFocalCrossentropy(const BinaryFocalCrossentropyOptions& options)
    : Loss(
          [options, watch = std::make_shared<internal::ScoreWatch>()](const Tensor& y_true,
                                                                      const Tensor& y_pred) {
            return internal::binary_focal(y_true, y_pred, options, *watch);
          },
          {.reduction = options.reduction, .name = options.name}) {
  internal::check_smoothing("BinaryFocalCrossentropy", options.label_smoothing);
  describe("BinaryFocalCrossentropy",
           Config()
               .set("apply_class_balancing", options.apply_class_balancing)
               .set("alpha", options.alpha)
               .set("gamma", options.gamma)
               .set("from_logits", options.from_logits)
               .set("label_smoothing", options.label_smoothing)
               .set("axis", options.axis));
}

CategoricalFocalCrossentropy::CategoricalFocalCrossentropy(
    const CategoricalFocalCrossentropyOptions& options)
    : Loss(
          [options, watch = std::make_shared<internal::ScoreWatch>()](const Tensor& y_true,
                                                                      const Tensor& y_pred) {
            return internal::categorical_focal(y_true, y_pred, options, *watch);
          },
          {.reduction = options.reduction, .name = options.name}) {
  internal::check_smoothing("CategoricalFocalCrossentropy", options.label_smoothing);
  describe("CategoricalFocalCrossentropy", internal::focal_config(options));
}

}  // namespace keras::losses
}  // namespace cohort
