#include "cohort/keras/losses/loss.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/handle.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/weighting.h"

namespace cohort::keras::losses {

using internal::str;

Loss::Loss(Function per_example, LossOptions options)
    : per_example_(std::move(per_example)), options_(std::move(options)) {
  if (options_.name.empty()) options_.name = "loss";
}

Loss Loss::with_reduction(Reduction reduction) const {
  Loss other = *this;
  other.options_.reduction = reduction;
  return other;
}

namespace {

const char* reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::NONE:
      return "none";
    case Reduction::SUM:
      return "sum";
    case Reduction::SUM_OVER_BATCH_SIZE:
      return "sum_over_batch_size";
    case Reduction::AUTO:
      break;
  }
  return "auto";
}

// What counts by that of the predictions and by that of the losses (see ignore_class).
Tensor both_masks(Tensor of_predictions, const Tensor& of_losses) {
  if (!of_predictions.defined() || !of_losses.defined()) {
    return of_losses.defined() ? of_losses : of_predictions;
  }
  while (of_predictions.dim() < of_losses.dim()) of_predictions = of_predictions.unsqueeze(-1);
  return of_losses.logical_and(of_predictions.to(of_losses.device()));
}

}  // namespace

void Loss::describe(std::string_view class_name, const Config& config) {
  class_name_ = class_name;
  config_ = config;
}

std::optional<Config> Loss::serialize() const {
  if (class_name_.empty()) return std::nullopt;
  Config config = config_;
  config.set("reduction", reduction_name(options_.reduction)).set("name", options_.name);
  return internal::serialized("keras.losses", class_name_, internal::json_of(config));
}

Tensor Loss::operator()(const Tensor& y_true, const Tensor& y_pred,
                        const Tensor& sample_weight) const {
  if (!per_example_) internal::throw_moved_from("Loss");
  const Reduction reduction = options_.reduction;
  const bool averages = reduction == Reduction::AUTO || reduction == Reduction::SUM_OVER_BATCH_SIZE;
  if (averages && distribute::has_strategy()) {
    throw InvalidArgumentError(str(
        "loss '", name(),
        "': use losses::Reduction::SUM or NONE in a training loop under a "
        "strategy; ",
        reduction == Reduction::AUTO ? "AUTO" : "SUM_OVER_BATCH_SIZE",
        " would divide by the batch of one replica. With NONE, nn::compute_average_loss divides "
        "by the global batch size"));
  }
  if (!y_true.defined() || !y_pred.defined()) {
    throw InvalidArgumentError(str("loss '", name(), "' got ", internal::describe(y_true), " and ",
                                   internal::describe(y_pred)));
  }
  Tensor losses;
  try {
    losses = per_example_(y_true, y_pred);
  } catch (const c10::Error& error) {
    internal::throw_libtorch_error(
        error, str("loss '", name(), "' failed on labels ", internal::describe(y_true),
                   " and predictions ", internal::describe(y_pred)));
  }
  if (!losses.defined()) {
    throw InvalidArgumentError(str("loss '", name(), "' gave an undefined tensor for labels ",
                                   internal::describe(y_true), " and predictions ",
                                   internal::describe(y_pred), "; return the losses"));
  }
  const Tensor own_mask = internal::mask_of(losses);
  const Tensor mask = both_masks(internal::mask_of(y_pred), own_mask);
  losses = internal::widened(losses);
  if (sample_weight.defined()) {
    losses = losses * internal::broadcast_weights(sample_weight, losses, name().c_str());
  }
  if (mask.defined()) losses = losses * internal::broadcast_weights(mask, losses, name().c_str());
  if (reduction == Reduction::NONE)
    return internal::with_mask(losses, own_mask.defined() ? mask : Tensor());
  const Tensor sum = losses.sum();
  if (reduction == Reduction::SUM || losses.numel() == 0) return sum;
  return mask.defined() ? sum / internal::count_unmasked(mask, losses) : sum / losses.numel();
}

}  // namespace cohort::keras::losses
