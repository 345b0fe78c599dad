// An optimizer's slots, and numbers that follow from others, as Keras 2.15 has them in checkpoints.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/optim/update_rule.h"
#include "cohort/train/objects/trackable.h"

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

  // The value that a restore brought for slot number `slot` of the rule, before the slot is made:
  // that of the `target`-th of `num_targets` variables that add() will be given together.
  // nullptr: none of this shape and dtype, or the rule's slots have several shapes.
  struct Place {
    size_t target = 0;
    size_t num_targets = 0;
    size_t slot = 0;
  };
  std::shared_ptr<PendingValue> pending_value(const Place& place, at::IntArrayRef shape,
                                              DType dtype) const;

  train::TrackableList& variables() { return variables_; }
  // The lists of the rule.
  std::vector<train::TrackableChild> lists();
  // Their names, and whether they have a slot for each variable.
  std::vector<std::pair<std::string, bool>> list_names() const;

 private:
  struct List {
    optim::SlotList spec;
    std::optional<size_t> slot;  // index among the rule's
    optim::SlotForm form = optim::SlotForm::kVariable;
    train::TrackableList objects;

    bool has_objects() const { return slot || spec.zeros_if_not_kept; }
  };

  void number(const std::vector<UpdateTarget>& targets);
  void add(List& list, const UpdateTarget& target);

  const std::string optimizer_name_;
  train::TrackableList variables_;
  std::list<List> lists_;  // their addresses stay
  bool are_all_like_variables_ = true;
};

// The slots of `target` that the rule uses: Keras has no others.
void append_used_slots(const UpdateTarget& target, const optim::UpdateRule& rule,
                       std::vector<distribute::Variable>& all);

// A number that follows from others, the current value of a schedule for example; nothing is ever
// restored into it.
class DerivedNumber final : public train::Trackable {
 public:
  DerivedNumber(std::string full_name, DType dtype, std::function<double()> current)
      : full_name_(std::move(full_name)), dtype_(dtype), current_(std::move(current)) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  std::string full_name_;
  DType dtype_;
  std::function<double()> current_;
};

}  // namespace cohort::internal
