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
#include "cohort/optim/schedule.h"
#include "cohort/optim/update_rule.h"

namespace cohort {
class GradientTape;
namespace internal {
class OptimizerState;
}
namespace train {
class Trackable;
}

namespace keras::optimizers {

// A number, or a schedule of one by iteration. Thread safety: immutable.
class LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  template <class Schedule>
  requires std::is_base_of_v<optim::LearningRateSchedule, Schedule> LearningRate(Schedule schedule)
      : schedule_(std::make_shared<const Schedule>(std::move(schedule))) {}
  LearningRate(std::shared_ptr<const optim::LearningRateSchedule> schedule)
      : schedule_(std::move(schedule)) {}

  // Meaningless with a schedule.
  double value() const { return value_; }
  // nullptr for a number.
  const std::shared_ptr<const optim::LearningRateSchedule>& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  std::shared_ptr<const optim::LearningRateSchedule> schedule_;
};

// What to do where a gradient, summed over all replicas, is NaN or infinite; decided alike by all
// replicas and tasks.
enum class NotFinite {
  ALLOW,  // update, as Keras does: the variables become NaN
  SKIP,   // leave all variables and iterations as they are; the first time a warning says so
  RAISE,  // leave them and throw InvalidArgument
};

// What every optimizer can do beside its formula. Their options have these members, too.
struct CommonOptions {
  // At most one of the next three may be above 0; they clip what is summed over all replicas.
  double clipnorm = 0;         // scales each variable's gradient to this norm at most
  double clipvalue = 0;        // cuts each element to [-clipvalue, clipvalue]
  double global_clipnorm = 0;  // scales all gradients so that their norm together is at most this
  // Before each update a variable loses this share of itself, times the learning rate.
  std::optional<double> weight_decay = std::nullopt;
  // Keep a moving average of each variable: average = ema_momentum * average +
  // (1 - ema_momentum) * variable, after each update.
  bool use_ema = false;
  double ema_momentum = 0.99;  // in [0, 1]
  // Every so many updates the variables are set to their averages; 0: never. At its end fit sets them
  // to their averages; so does finalize_variable_values.
  int64_t ema_overwrite_frequency = 0;
  // Only every so many-th call updates, with the mean of the gradients of these calls; they are
  // exchanged between replicas then only. A missing gradient counts as zero. The calls of one update bring
  // the same variables: others are an InvalidArgument. With parameter servers the calls are each worker's own.
  int64_t gradient_accumulation_steps = 1;
  // Other than ALLOW costs a pass over the gradients.
  NotFinite not_finite = NotFinite::ALLOW;
};

struct ApplyOptions {
  // The gradients are already summed over replicas (they are equal on all of them).
  bool skip_gradients_aggregation = false;
};

using GradientsAndVariables = std::vector<std::pair<Tensor, Variable>>;

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

  // Sets the variables to their moving averages, for evaluation or at the end of training; fit ends with
  // it.
  // Errors: FailedPrecondition (in a step; made without use_ema), NotFound (a variable that the
  // optimizer has not seen).
  void finalize_variable_values(const std::vector<Variable>& variables) const;

  // How many updates were left out for gradients that were not finite: with parameter servers by all
  // workers together, elsewhere by each process, which is the same number. Outside of steps.
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
  // As Keras writes it, with the present learning rate; nothing of a class of the program, or with
  // a schedule of one.
  std::optional<Config> serialize() const;

 protected:
  // Errors: InvalidArgument (names the option and its value).
  Optimizer(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
            LearningRate learning_rate, const CommonOptions& options = {});
  // Says how the optimizer was made, in Keras's names.
  void describe(std::string_view class_name, const Config& config) const;

 private:
  friend class internal::OptimizerState;
  internal::Handle<internal::OptimizerState, "Optimizer"> state_;
};

}  // namespace keras::optimizers
}  // namespace cohort
