// The state behind an optimizer handle.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/core/build_once.h"
#include "cohort/distribute/gradients/exchange_plans.h"
#include "cohort/keras/base/config.h"
#include "cohort/keras/optimizers/checkpoint_slots.h"
#include "cohort/keras/optimizers/decay_exclusion.h"
#include "cohort/keras/optimizers/gradient_accumulator.h"
#include "cohort/keras/optimizers/learning_rate_value.h"
#include "cohort/keras/optimizers/optimizer_options.h"
#include "cohort/optim/update_rule.h"
#include "cohort/train/objects/saved_kind.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::keras::optimizers {
class Optimizer;
}

namespace cohort::internal {

class LossScale;
class StrategyCore;

// What a loss scale asks of an update.
struct GradientScaling {
  double factor = 1;  // by which the sums of the gradients are multiplied before all else
  // Hears whether they are finite. An update for which they are not is left out, and counts.
  LossScale* loss_scale = nullptr;
};

// Thread safety: as Optimizer.
class OptimizerState final : public train::Trackable,
                             public SavedKind,
                             public std::enable_shared_from_this<OptimizerState> {
 public:
  OptimizerState(std::string name, std::unique_ptr<const optim::UpdateRule> rule,
                 keras::optimizers::LearningRate learning_rate,
                 const keras::optimizers::CommonOptions& options);
  ~OptimizerState() override;
  // The state that this handle names.
  static OptimizerState& of(const keras::optimizers::Optimizer& optimizer);
  static std::shared_ptr<OptimizerState> shared(const keras::optimizers::Optimizer& optimizer);

  void apply(const keras::optimizers::GradientsAndVariables& gradients,
             const keras::optimizers::ApplyOptions& options, const GradientScaling& scaling = {});
  void minimize(const Tensor& loss, const std::vector<Variable>& variables, GradientTape& tape,
                const GradientScaling& scaling = {});
  void build(const std::vector<Variable>& variables);
  void finalize_variable_values(const std::vector<Variable>& variables);
  // See Optimizer.
  void exclude_from_weight_decay(const std::vector<Variable>& variables,
                                 const std::vector<std::string>& names);
  // The same for those of the variables that have averages, if the optimizer keeps any.
  void finish_fit(const std::vector<Variable>& variables);

  const Variable& iterations();
  double learning_rate();
  // Errors: FailedPrecondition (a schedule decides the rate).
  void check_rate_can_be_set() const;
  void set_learning_rate(double learning_rate);
  std::vector<Variable> variables();
  const std::string& name() const { return name_; }
  bool has_schedule() const { return schedule_ != nullptr; }
  int64_t skipped_updates() const {
    return skipped_by_all_ ? skipped_by_all_.value().item<int64_t>() : skipped_.load();
  }
  // How the optimizer was made; no class: one of the program.
  std::string class_name;
  keras::Config config;

  // Makes the iterations, so that a checkpoint always has them.
  std::vector<train::TrackableChild> checkpoint_children() override;
  // Optimizers of another class, or with other slots, number what they keep for a variable
  // otherwise.
  void check_saved(const std::vector<SavedChild>& children) const override;

 private:
  // The rest of a step, after the gradients were passed. False: they are not finite, and not
  // wanted; skip says so.
  bool update(distribute::ReplicaContext& replica, GradientExchange& exchange,
              bool aggregate_gradients, const GradientScaling& scaling);
  // Errors: InvalidArgument (NotFinite::RAISE).
  void skip(const distribute::ReplicaContext& replica, const GradientScaling& scaling);
  // Says what a step that is recorded is to know of this one's update.
  void prepare_recording(UpdateStep& step);
  // In place: assign_add would cost several operations of libtorch's.
  void count_update(const distribute::ReplicaContext& replica);
  // The slots of variables seen before, new ones of the others.
  std::vector<UpdateTarget> make_targets(const std::vector<Variable>& variables);
  const UpdateTarget* find_target(const Variable& variable) const;
  // The average that use_ema keeps; none: the optimizer has never updated the variable.
  Variable average_of(const Variable& variable);
  // `variable` is the `index`-th of `num_new` variables that are new to the optimizer.
  UpdateTarget make_target(const Variable& variable, size_t index, size_t num_new) const;
  // Errors: InvalidArgument (this replica has no gradient at all).
  void check_brought(const distribute::ReplicaContext& replica, const GradientExchange& exchange);
  double learning_rate_at(int64_t iteration) const;

  const std::string name_;
  const std::unique_ptr<const optim::UpdateRule> rule_;
  // nullptr: weights do not decay.
  const std::unique_ptr<const optim::UpdateRule> rule_without_decay_;
  LearningRateValue learning_rate_;
  const std::shared_ptr<const optim::LearningRateSchedule> schedule_;
  const keras::optimizers::CommonOptions options_;
  // Keras's schedules compute in float32, whatever floatx() is.
  DerivedNumber scheduled_learning_rate_{"current_learning_rate", float32,
                                         [this] { return learning_rate(); }};
  std::vector<std::pair<std::string, std::unique_ptr<DerivedNumber>>> derived_numbers_;
  std::shared_ptr<StrategyCore> strategy_;  // of the scope it was made in, if any

  DecayExclusion excluded_;                           // from weight decay
  std::unique_ptr<GradientAccumulator> accumulator_;  // where updates are fewer than calls
  BuildOnce iterations_once_;
  Variable iterations_;
  std::atomic<bool> warned_{false};
  std::atomic<int64_t> skipped_{0};
  Variable skipped_by_all_;  // where workers run steps by themselves: on the ps
  ExchangePlans plans_;

  mutable std::mutex mutex_;
  std::vector<UpdateTarget> targets_;  // every variable seen, in that order; guarded by mutex_
  CheckpointSlots checkpoint_slots_;   // once there are iterations_, guarded by mutex_
};

}  // namespace cohort::internal
