#include "cohort/keras/losses/known_predictions.h"

#include <ATen/ops/aminmax.h>

#include <tuple>

#include "cohort/core/observe/logging.h"
#include "cohort/keras/base/backend.h"
#include "cohort/ops/kinks.h"

namespace cohort::internal {

void ScoreWatch::look(const Tensor& predictions, const char* what, bool are_shares) {
  constexpr double kSlack = 1e-3;  // of rounding
  static std::atomic<bool> warned = false;
  if (left_.load(std::memory_order_relaxed) <= 0 || predictions.numel() == 0 || warned) return;
  left_.fetch_sub(1, std::memory_order_relaxed);
  const auto [least, largest] = at::aminmax(predictions.detach());
  const auto low = least.item<double>();
  const auto high = largest.item<double>();
  if (!(low < -kSlack || (!are_shares && high > 1 + kSlack)) || warned.exchange(true)) return;
  log_warning(what, ": the predictions are from ", low, " to ", high, ", so they are no ",
              "probabilities, but from_logits is false: say {.from_logits = true} if the model "
              "ends without a sigmoid or softmax");
}

Predictions best_known(const Tensor& predictions, const Tensor& logits, bool from_logits,
                       const char* what) {
  static std::atomic<bool> warned = false;
  if (!logits.defined()) return {predictions, from_logits};
  if (from_logits && !warned.exchange(true)) {
    log_warning(what, ": from_logits is true, but the predictions are what a sigmoid or softmax ",
                "has made of logits; those are used, as Keras does");
  }
  return {logits, true};
}

Tensor crossentropy_of_elements(const Tensor& y_true, const Predictions& predictions) {
  if (predictions.are_logits) return sigmoid_crossentropy(y_true, predictions.values);
  constexpr double kEpsilon = keras::backend::kEpsilon;
  const Tensor p = predictions.values.clamp(kEpsilon, 1 - kEpsilon);
  return (y_true * (p + kEpsilon).log() + (1 - y_true) * (1 - p + kEpsilon).log()).neg();
}

}  // namespace cohort::internal
