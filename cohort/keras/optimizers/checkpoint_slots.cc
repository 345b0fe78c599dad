#include "cohort/keras/optimizers/checkpoint_slots.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {
namespace {

// A slot that Keras has and never changes: a checkpoint without it would not be Keras's.
class ZeroSlot final : public train::Trackable {
 public:
  ZeroSlot(std::string name, std::vector<int64_t> shape, DType dtype)
      : name_(std::move(name)), shape_(std::move(shape)), dtype_(dtype) {}

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    return {{.attribute = train::kVariableValue,
             .full_name = name_,
             .parts = {{at::zeros({}, dtype_).expand(shape_)}}}};
  }
  void prepare_restore(train::RestoreSource& source) override {
    // Its shape must be right all the same.
    source.read(train::kVariableValue, shape_, dtype_, [](const Tensor&) {});
  }

 private:
  std::string name_;
  std::vector<int64_t> shape_;
  DType dtype_;
};

}  // namespace

CheckpointSlots::CheckpointSlots(std::string optimizer_name, const optim::UpdateRule& rule)
    : optimizer_name_(std::move(optimizer_name)) {
  const std::vector<optim::SlotSpec> slots = rule.slots();
  for (optim::SlotList& spec : rule.slot_lists()) {
    const auto slot =
        std::find_if(slots.begin(), slots.end(),
                     [&](const optim::SlotSpec& candidate) { return candidate.name == spec.slot; });
    List& list = lists_.emplace_back();
    if (slot != slots.end()) {
      list.slot = static_cast<size_t>(slot - slots.begin());
      list.form = slot->form;
      are_all_like_variables_ &= slot->form == optim::SlotForm::kVariable;
    }
    list.spec = std::move(spec);
  }
}

void CheckpointSlots::add(const std::vector<UpdateTarget>& targets) {
  std::vector<size_t> sizes = {variables_.size()};
  for (const List& list : lists_) sizes.push_back(list.objects.size());
  try {
    number(targets);
  } catch (...) {
    auto size = sizes.begin();
    variables_.truncate(*size++);
    for (List& list : lists_) list.objects.truncate(*size++);
    throw;
  }
}

void CheckpointSlots::number(const std::vector<UpdateTarget>& targets) {
  int walks = 0;
  for (const List& list : lists_) walks = std::max(walks, list.spec.walk + 1);
  for (int walk = 0; walk < walks; ++walk) {
    for (const UpdateTarget& target : targets) {
      for (List& list : lists_) {
        if (list.spec.walk == walk) add(list, target);
      }
    }
  }
}

// Counts as number() will.
std::shared_ptr<PendingValue> CheckpointSlots::pending_value(const Place& place,
                                                             at::IntArrayRef shape,
                                                             DType dtype) const {
  if (!are_all_like_variables_) return nullptr;  // variables have different numbers of slots
  const auto own = std::find_if(lists_.begin(), lists_.end(),
                                [&](const List& list) { return list.slot == place.slot; });
  if (own == lists_.end()) return nullptr;
  size_t number = variables_.size();
  bool before_own = true;
  for (const List& list : lists_) {
    before_own = before_own && &list != &*own;
    if (!list.has_objects()) continue;
    if (list.spec.walk < own->spec.walk) number += place.num_targets;
    if (list.spec.walk == own->spec.walk) number += place.target + (before_own ? 1 : 0);
  }
  return variables_.pending_value(number, shape, dtype);
}

void CheckpointSlots::add(List& list, const UpdateTarget& target) {
  if (!list.has_objects()) return;
  std::shared_ptr<train::Trackable> slot;
  const std::string name = str(optimizer_name_, "/", list.spec.slot, "/", target.variable.name());
  const bool is_used = !list.slot || optim::slot_is_used(list.form, target.variable.shape().size());
  if (!is_used) {  // Keras has a placeholder in the list of the formula, and in no other
    slot = std::make_shared<ZeroSlot>(name, std::vector<int64_t>(), int32);
    list.objects.add(*slot, slot);
    return;
  }
  if (list.slot) {
    slot = target.slots[*list.slot].impl_ptr();
  } else {
    slot = std::make_shared<ZeroSlot>(name, target.variable.shape(), target.variable.dtype());
  }
  list.objects.add(*slot, slot);
  variables_.add(*slot);
}

std::vector<train::TrackableChild> CheckpointSlots::lists() {
  std::vector<train::TrackableChild> children;
  for (List& list : lists_) children.push_back({list.spec.name, &list.objects});
  return children;
}

std::vector<std::pair<std::string, bool>> CheckpointSlots::list_names() const {
  std::vector<std::pair<std::string, bool>> names;
  for (const List& list : lists_) names.emplace_back(list.spec.name, list.has_objects());
  return names;
}

void append_used_slots(const UpdateTarget& target, const optim::UpdateRule& rule,
                       std::vector<distribute::Variable>& all) {
  const std::vector<optim::SlotSpec> specs = rule.slots();
  for (size_t i = 0; i < specs.size(); ++i) {
    if (optim::slot_is_used(specs[i].form, target.variable.shape().size())) {
      all.push_back(target.slots[i]);
    }
  }
}

void DerivedNumber::prepare_restore(train::RestoreSource& source) {
  source.read(train::kVariableValue, {}, dtype_, [](const Tensor&) {});
}

std::vector<train::CheckpointValue> DerivedNumber::checkpoint_values() {
  return {{.attribute = train::kVariableValue,
           .full_name = full_name_,
           .parts = {{at::scalar_tensor(current_(), at::dtype(dtype_))}}}};
}

}  // namespace cohort::internal
