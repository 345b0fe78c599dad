#include "cohort/keras/optimizers/loss_scale_optimizer.h"

#include <ATen/ops/full.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/optimizers/scaled_optimizer.h"

namespace cohort {
namespace internal {
namespace {

using keras::mixed_precision::LossScaleOptions;

constexpr double kInitialScale = 1 << 15;
constexpr int64_t kGrowthSteps = 2000;

// Errors: InvalidArgument (names the option and its value).
void check(const LossScaleOptions& options) {
  if (!options.dynamic && !options.initial_scale) {
    throw InvalidArgumentError(
        "LossScaleOptimizer: a fixed scale (.dynamic = false) needs .initial_scale, which it is");
  }
  if (!options.dynamic && options.dynamic_growth_steps) {
    throw InvalidArgumentError(str("LossScaleOptimizer: dynamic_growth_steps is ",
                                   *options.dynamic_growth_steps,
                                   ", but a fixed scale (.dynamic = false) does not grow"));
  }
  const auto scale = static_cast<float>(options.initial_scale.value_or(1));
  if (!(scale > 0 && std::isfinite(scale))) {
    throw InvalidArgumentError(str("LossScaleOptimizer: initial_scale is ", *options.initial_scale,
                                   "; it must be a finite number above 0"));
  }
  if (options.dynamic_growth_steps.value_or(1) < 1) {
    throw InvalidArgumentError(str("LossScaleOptimizer: dynamic_growth_steps is ",
                                   *options.dynamic_growth_steps, ", below 1"));
  }
}

std::shared_ptr<ScaledOptimizer> wrapped(const keras::optimizers::Optimizer& inner,
                                         const LossScaleOptions& options) {
  if (scaled_optimizer(inner) != nullptr) {
    throw InvalidArgumentError(str("LossScaleOptimizer: the inner optimizer ", quoted(inner.name()),
                                   " is a LossScaleOptimizer already"));
  }
  check(options);
  const std::optional<int64_t> growth_steps =
      options.dynamic ? std::make_optional(options.dynamic_growth_steps.value_or(kGrowthSteps))
                      : std::nullopt;
  return std::make_shared<ScaledOptimizer>(
      OptimizerState::shared(inner), options.initial_scale.value_or(kInitialScale), growth_steps);
}

}  // namespace
}  // namespace internal

namespace keras::mixed_precision {

using internal::scaled_optimizer;

LossScaleOptimizer::LossScaleOptimizer(const optimizers::Optimizer& inner_optimizer,
                                       const LossScaleOptions& options)
    : optimizers::Optimizer(inner_optimizer, internal::wrapped(inner_optimizer, options)) {}

std::optional<LossScaleOptimizer> LossScaleOptimizer::from(const optimizers::Optimizer& optimizer) {
  if (scaled_optimizer(optimizer) == nullptr) return std::nullopt;
  return LossScaleOptimizer(optimizer, 0);
}

bool LossScaleOptimizer::dynamic() const { return scaled_optimizer(*this)->dynamic() != nullptr; }

Tensor LossScaleOptimizer::loss_scale() const {
  return at::full({}, scaled_optimizer(*this)->scale(), float32);
}

Variable LossScaleOptimizer::dynamic_counter() const {
  if (dynamic()) return scaled_optimizer(*this)->dynamic()->counter();
  throw FailedPreconditionError("dynamic_counter: this LossScaleOptimizer has a fixed scale");
}

double LossScaleOptimizer::initial_scale() const {
  return scaled_optimizer(*this)->initial_scale();
}

std::optional<int64_t> LossScaleOptimizer::dynamic_growth_steps() const {
  if (!dynamic()) return std::nullopt;
  return scaled_optimizer(*this)->dynamic()->growth_steps();
}

optimizers::Optimizer LossScaleOptimizer::inner_optimizer() const {
  return internal::without_scale(*this);
}

Tensor LossScaleOptimizer::get_scaled_loss(const Tensor& loss) const {
  return scaled_optimizer(*this)->scaled(loss);
}

std::vector<Tensor> LossScaleOptimizer::get_unscaled_gradients(
    const std::vector<Tensor>& gradients) const {
  return scaled_optimizer(*this)->unscaled(gradients);
}

}  // namespace keras::mixed_precision
}  // namespace cohort
