// What is behind a LossScaleOptimizer: an optimizer, and the scale of its losses.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/keras/base/config.h"
#include "cohort/keras/optimizers/loss_scale.h"
#include "cohort/keras/optimizers/optimizer_state.h"

namespace cohort::internal {

// The names under which Keras 2.15 writes the class, and under which older files have it.
inline constexpr const char* kLossScaleClass = "LossScaleOptimizerV3";
inline constexpr const char* kOlderLossScaleClass = "LossScaleOptimizer";

// Thread safety: as Optimizer.
class ScaledOptimizer final : public train::Trackable, public SavedKind {
 public:
  // growth_steps: nullopt where the scale is fixed.
  ScaledOptimizer(std::shared_ptr<OptimizerState> inner, double initial_scale,
                  std::optional<int64_t> growth_steps);

  void apply(const keras::optimizers::GradientsAndVariables& gradients,
             const keras::optimizers::ApplyOptions& options);
  void minimize(const Tensor& loss, const std::vector<Variable>& variables, GradientTape& tape);
  Tensor scaled(const Tensor& loss);
  std::vector<Tensor> unscaled(const std::vector<Tensor>& gradients);

  double scale() { return dynamic_ == nullptr ? initial_scale_ : dynamic_->value(); }
  double initial_scale() const { return initial_scale_; }
  // nullptr: it is fixed.
  LossScale* dynamic() { return dynamic_.get(); }
  const LossScale* dynamic() const { return dynamic_.get(); }

  // The configuration of a LossScaleOptimizer whose inner optimizer has this one.
  keras::Config serialize(const keras::Config& inner) const;

  // The inner optimizer's, and the scale.
  std::vector<train::TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return inner_->awaits_children(); }
  void check_saved(const std::vector<SavedChild>& children) const override;

 private:
  // Says once what the program forgets.
  void warn_unless_scaled();

  const std::shared_ptr<OptimizerState> inner_;
  const double initial_scale_;
  const std::unique_ptr<LossScale> dynamic_;
  std::atomic<bool> has_scaled_{false};
  std::atomic<bool> has_unscaled_{false};
  std::atomic<bool> warned_{false};
};

}  // namespace cohort::internal
