// Optimizers: they turn gradients into new values of variables.
//
//   optimizers::Adam optimizer({.learning_rate = 1e-3});
//   // in a step, on every replica:
//   auto gradients = tape.gradient(loss, model.trainable_variables());
//   optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/base/config.h"
#include "cohort/keras/base/list.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/optimizers/optimizer_options.h"
#include "cohort/optim/update_rule.h"

namespace cohort {
class GradientTape;
namespace keras::optimizers {
class Optimizer;
}
namespace internal {
class OptimizerState;
class ScaledOptimizer;
// What is behind a mixed_precision::LossScaleOptimizer; nullptr: the optimizer is of another class.
ScaledOptimizer* scaled_optimizer(const keras::optimizers::Optimizer& optimizer);
keras::optimizers::Optimizer without_scale(const keras::optimizers::Optimizer& optimizer);
}  // namespace internal
namespace train {
class Trackable;
}

namespace keras::optimizers {

// A handle: copies name the same optimizer. Its own variables (slots) are created when it first
// sees a variable, under the strategy of that variable.
// Thread safety: apply_gradients and minimize from all replicas of a step at once; the rest from
// one thread while no step runs.
class COHORT_API Optimizer {
 public:
  // Sums the replicas' gradients and updates the variables, once for all replicas. An undefined
  // gradient counts as zero; if it is undefined on every replica, the variable does not change. The
  // first time that this replica lacks gradients, a warning names the variables. In a replica,
  // COLLECTIVE: all replicas pass the same variables. An empty list does nothing.
  // Errors: FailedPrecondition (cross-replica context; variables of a strategy other than the
  // current one), InvalidArgument (a gradient's shape or dtype, a variable twice, no gradient at
  // all, replicas with different variables), DeadlineExceeded (a replica does not arrive).
  void apply_gradients(const GradientsAndVariables& gradients,
                       const ApplyOptions& options = {}) const;

  // Computes the gradients of `loss` by `tape` and applies them. Between tasks, gradients travel
  // while backward passes are still running; the result is bitwise that of gradient and
  // apply_gradients. Parameters of a TorchModel must not keep a .grad of their own. In a
  // replica, COLLECTIVE, with the same variables.
  // Errors: as GradientTape::gradient, apply_gradients.
  void minimize(const Tensor& loss, const std::vector<Variable>& variables,
                GradientTape& tape) const;

  // Makes the slots of `variables` ahead of the first step.
  // Errors: FailedPrecondition (in a step; variables of several strategies).
  void build(const std::vector<Variable>& variables) const;

  // Sets the variables to their moving averages, for evaluation or at the end of training; fit ends
  // with it.
  // Errors: FailedPrecondition (in a step; made without use_ema), NotFound (a variable that the
  // optimizer has not seen).
  void finalize_variable_values(const std::vector<Variable>& variables) const;

  // Lets these variables, and those in whose name one of the texts occurs ("bias"), keep their size
  // where weight_decay makes the others smaller; in place of what an earlier call said. As in Keras
  // no file holds it: a program says it again. Outside of steps.
  // Errors: FailedPrecondition (the optimizer has slots already: call it before build and the first
  // step).
  void exclude_from_weight_decay(const std::vector<Variable>& var_list,
                                 const std::vector<std::string>& var_names = {}) const;

  // How many updates were left out for gradients that were not finite: with parameter servers by
  // all workers together, elsewhere by each process, which is the same number. Outside of steps.
  int64_t skipped_updates() const;
  // The number of updates applied: int64, shape [].
  Variable iterations() const;
  // The learning rate of the next update. A number is rounded to the floatx() of the time at which
  // the optimizer was made, as in Keras.
  double learning_rate() const;
  // Errors: FailedPrecondition (made with a schedule), InvalidArgument (not finite).
  void set_learning_rate(double learning_rate) const;
  // iterations, then the slots, variable by variable.
  List<Variable> variables() const;
  const std::string& name() const;
  // For a train::Checkpoint. Make the optimizer under the scope of the strategy that runs the
  // steps: saving or restoring before the first step makes its iterations.
  std::shared_ptr<train::Trackable> trackable() const;
  // Keras's form, with the present learning rate; nullopt for a class of the program, or one with a
  // schedule of the program.
  std::optional<Config> serialize() const;

 protected:
  // Errors: InvalidArgument (names the option and its value).
  Optimizer(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
            LearningRate learning_rate, const CommonOptions& options = {});
  // The same optimizer, whose gradients `scaled` scales.
  Optimizer(const Optimizer& inner, std::shared_ptr<internal::ScaledOptimizer> scaled)
      : state_(inner.state_), scaled_(std::move(scaled)) {}
  // Says how the optimizer was made, in Keras's names.
  void describe(std::string_view class_name, const Config& config) const;

 private:
  friend class internal::OptimizerState;
  friend internal::ScaledOptimizer* internal::scaled_optimizer(const Optimizer& optimizer);
  friend Optimizer internal::without_scale(const Optimizer& optimizer);

  internal::Handle<internal::OptimizerState, "Optimizer"> state_;
  std::shared_ptr<internal::ScaledOptimizer> scaled_;
};

}  // namespace keras::optimizers
}  // namespace cohort
