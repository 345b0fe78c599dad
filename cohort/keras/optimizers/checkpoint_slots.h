// An optimizer's slots and learning rate as Keras 2.15 has them in checkpoints.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/gradient_exchange.h"
#include "cohort/optim/update_rule.h"
#include "cohort/train/trackable.h"

namespace cohort::internal {

// The lists "_variables" (the iterations, then all slots) and those of an update rule.
// Thread safety: as Optimizer.
class CheckpointSlots {
 public:
  CheckpointSlots(std::string optimizer_name, const optim::UpdateRule& rule);

  void add_iterations(train::Trackable& iterations) { variables_.add(iterations); }
  // Numbers the slots of `targets`, which were made together. After add_iterations.
  // Errors: those of a restore that they do not fit; then they are not numbered.
  void add(const std::vector<UpdateTarget>& targets);

  train::TrackableList& variables() { return variables_; }
  // The lists of the rule.
  std::vector<train::TrackableChild> lists();

 private:
  struct List {
    optim::SlotList spec;
    std::optional<size_t> slot;  // index among the rule's
    train::TrackableList objects;
  };

  void number(const std::vector<UpdateTarget>& targets);
  void add(List& list, const UpdateTarget& target);

  const std::string optimizer_name_;
  train::TrackableList variables_;
  std::list<List> lists_;  // their addresses stay
};

// A number that is kept in the dtype of Keras's variable, so that a checkpoint brings back what was
// saved, bit for bit. Thread safety: any thread.
class LearningRateValue final : public train::Trackable {
 public:
  // Errors: InvalidArgument (not finite in `dtype`).
  LearningRateValue(double value, DType dtype);

  double get() const { return value_; }
  void set(double value);  // Errors: as the constructor

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  double rounded(double value) const;

  const DType dtype_;
  std::atomic<double> value_;
};

// What a schedule comes to; nothing is ever restored into it.
class ScheduledLearningRate final : public train::Trackable {
 public:
  explicit ScheduledLearningRate(std::function<double()> current) : current_(std::move(current)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  std::function<double()> current_;
};

}  // namespace cohort::internal
