// Loss scaling, so that small gradients survive float16.
//
//   keras::mixed_precision::LossScaleOptimizer scaling(keras::optimizers::Adam{});
//   // in a step, on every replica:
//   GradientTape tape;
//   Tensor scaled_loss = scaling.get_scaled_loss(loss);
//   auto gradients = scaling.get_unscaled_gradients(
//       tape.gradient(scaled_loss, model.trainable_variables()));
//   scaling.apply_gradients(zip(gradients, model.trainable_variables()));
//
// minimize, and with it fit, scales by itself; compile wraps the optimizer of a model whose policy
// is "mixed_float16". See docs/mixed_precision.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/optimizers/optimizer.h"

namespace cohort::keras::mixed_precision {

struct LossScaleOptions {
  // Whether the scale follows the gradients: doubled after dynamic_growth_steps steps with finite
  // ones, halved (to 1 at least) by a step with others, which changes no variable.
  bool dynamic = true;
  std::optional<double> initial_scale = std::nullopt;          // missing: 2^15; fixed: needed
  std::optional<int64_t> dynamic_growth_steps = std::nullopt;  // missing: 2000; fixed: none
};

// Whether gradients are finite is decided by their sum over all replicas and tasks, so that all
// update or none; a step that is left out counts in iterations() as in Keras, and in
// skipped_updates(). With a fixed scale no step is left out, unless the inner optimizer's
// not_finite says so. A checkpoint holds what one of the inner optimizer does, and the scale.
// Thread safety: as Optimizer.
class COHORT_API LossScaleOptimizer : public optimizers::Optimizer {
 public:
  // Both scale the same optimizer's updates; see inner_optimizer().
  // Errors: InvalidArgument (a LossScaleOptimizer as the inner one; a scale that is not a finite
  // number above 0; dynamic_growth_steps below 1; options that do not fit; a strategy with
  // parameter servers, which Keras refuses too: "mixed_bfloat16" needs no scale).
  explicit LossScaleOptimizer(const optimizers::Optimizer& inner_optimizer,
                              const LossScaleOptions& options = {});

  // The optimizer as what it was made, for one that compile or a file has made; nullopt: it is of
  // another class.
  static std::optional<LossScaleOptimizer> from(const optimizers::Optimizer& optimizer);

  bool dynamic() const;
  // Shape: []. float32.
  Tensor loss_scale() const;
  // The steps since the scale has changed: int64, shape [].
  // Errors: FailedPrecondition (a fixed scale).
  Variable dynamic_counter() const;
  double initial_scale() const;
  // Nullopt: a fixed scale.
  std::optional<int64_t> dynamic_growth_steps() const;
  // Its apply_gradients and minimize know no scale.
  optimizers::Optimizer inner_optimizer() const;

  // The loss, times the scale. Recorded by tapes.
  Tensor get_scaled_loss(const Tensor& loss) const;
  // The gradients, over the scale; undefined ones stay so.
  std::vector<Tensor> get_unscaled_gradients(const std::vector<Tensor>& gradients) const;

 private:
  explicit LossScaleOptimizer(const optimizers::Optimizer& wrapped, int)
      : optimizers::Optimizer(wrapped) {}
};

}  // namespace cohort::keras::mixed_precision
