#include "cohort/keras/optimizers/scaled_optimizer.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "cohort/core/observe/logging.h"
#include "cohort/keras/base/config_json.h"

namespace cohort::internal {
namespace {

constexpr const char* kScale = "loss_scale";  // Keras's name in checkpoints

// What gradients are multiplied by: in float32, as Keras does.
double reciprocal(double scale) { return 1.0F / static_cast<float>(scale); }

}  // namespace

ScaledOptimizer::ScaledOptimizer(std::shared_ptr<OptimizerState> inner, double initial_scale,
                                 std::optional<int64_t> growth_steps)
    : inner_(std::move(inner)),
      initial_scale_(initial_scale),
      dynamic_(growth_steps ? std::make_unique<LossScale>(initial_scale, *growth_steps) : nullptr) {
  check_scaled_strategy();
}

void ScaledOptimizer::apply(const keras::optimizers::GradientsAndVariables& gradients,
                            const keras::optimizers::ApplyOptions& options) {
  warn_unless_scaled();
  inner_->apply(gradients, options, {.loss_scale = dynamic()});
}

void ScaledOptimizer::minimize(const Tensor& loss, const std::vector<Variable>& variables,
                               GradientTape& tape) {
  const double scale = this->scale();
  const Tensor scaled_loss = [&] {
    const at::AutoGradMode recording(true);
    return loss * scale;
  }();
  inner_->minimize(scaled_loss, variables, tape,
                   {.factor = reciprocal(scale), .loss_scale = dynamic()});
}

Tensor ScaledOptimizer::scaled(const Tensor& loss) {
  has_scaled_ = true;
  return loss * scale();
}

std::vector<Tensor> ScaledOptimizer::unscaled(const std::vector<Tensor>& gradients) {
  has_unscaled_ = true;
  const double factor = reciprocal(scale());
  std::vector<Tensor> unscaled;
  for (const Tensor& gradient : gradients) {
    unscaled.push_back(gradient.defined() ? gradient * factor : gradient);
  }
  return unscaled;
}

void ScaledOptimizer::warn_unless_scaled() {
  const bool scaled = has_scaled_;
  const bool unscaled = has_unscaled_;
  if ((scaled && unscaled) || warned_.exchange(true)) return;
  log_warning("apply_gradients of a LossScaleOptimizer was called, but ",
              scaled     ? "get_unscaled_gradients"
              : unscaled ? "get_scaled_loss"
                         : "get_scaled_loss and get_unscaled_gradients",
              " never: the loss needs the one, its gradients the other, or the updates have the "
              "wrong size");
}

keras::Config ScaledOptimizer::serialize(const keras::Config& inner) const {
  const Json growth_steps = dynamic_ == nullptr ? Json(nullptr) : Json(dynamic_->growth_steps());
  // Keras finds the class by these alone.
  return ConfigData::config_of({{"module", "keras.src.mixed_precision.loss_scale_optimizer"},
                                {"class_name", kLossScaleClass},
                                {"config",
                                 {{"inner_optimizer", json_of(inner)},
                                  {"dynamic", dynamic_ != nullptr},
                                  {"initial_scale", initial_scale_},
                                  {"dynamic_growth_steps", growth_steps}}},
                                {"registered_name", kLossScaleClass}});
}

std::vector<train::TrackableChild> ScaledOptimizer::checkpoint_children() {
  std::vector<train::TrackableChild> children = inner_->checkpoint_children();
  if (dynamic_ != nullptr) children.push_back({kScale, dynamic_.get(), /*may_be_missing=*/true});
  return children;
}

void ScaledOptimizer::check_saved(const std::vector<SavedChild>& children) const {
  inner_->check_saved(children);
}

}  // namespace cohort::internal
