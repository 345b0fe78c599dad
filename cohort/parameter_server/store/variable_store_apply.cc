// How a VariableStore checks and applies the operations of a push.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <shared_mutex>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/parameter_server/store/apply_rule.h"
#include "cohort/parameter_server/store/locked_shards.h"
#include "cohort/parameter_server/store/shard_form.h"
#include "cohort/parameter_server/store/variable_store.h"

namespace cohort::internal {
namespace {

template <class... Fns>
struct Overloads : Fns... {
  using Fns::operator()...;
};
template <class... Fns>
Overloads(Fns...) -> Overloads<Fns...>;

// Whether nobody else has the tensor, nor any of its memory.
bool is_sole_owner(const Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 &&
         has_contiguous_elements(tensor) && tensor.storage().nbytes() == tensor.nbytes();
}

// Rows of `value`: indices within it, values of its row shape.
void check_rows(const std::string& name, const char* what, const Tensor& indices,
                const Tensor& rows, const Tensor& value, bool ascending) {
  bool fits = indices.dim() == 1 && indices.scalar_type() == int64 && value.dim() > 0 &&
              rows.dim() == value.dim() && rows.scalar_type() == value.scalar_type() &&
              rows.size(0) == indices.size(0) && rows.sizes().slice(1) == value.sizes().slice(1);
  if (!fits) {
    throw InvalidArgumentError(str(what, " of '", name, "' has rows ", form_of(rows),
                                   " at indices ", form_of(indices), ", but the shard is ",
                                   form_of(value)));
  }
  const int64_t* ids = indices.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if (ids[i] < 0 || ids[i] >= value.size(0)) {
      throw InvalidArgumentError(
          str(what, " of '", name, "' names row ", ids[i], " of ", value.size(0)));
    }
    if (ascending && i > 0 && ids[i] <= ids[i - 1]) {
      throw InvalidArgumentError(str(what, " of '", name, "' names row ", ids[i], " after ",
                                     ids[i - 1], "; rows must ascend"));
    }
  }
}

}  // namespace

// What an update reads and writes, locked: in one order whatever it names, so that two never wait
// for each other.
class VariableStore::LockedUpdate {
 public:
  // Errors: InvalidArgument (a shard that is named twice).
  LockedUpdate(const UpdateShard& update, const Target& target) {
    std::array<std::mutex*, optim::kMaxSlots + 1> mutexes{&target.shard->mutex};
    const size_t count = update.slots.size() + 1;
    for (size_t i = 1; i < count; ++i) mutexes[i] = &target.slots[i - 1]->mutex;
    const auto end = mutexes.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(mutexes.begin(), end, std::less<>());
    if (std::adjacent_find(mutexes.begin(), end) != end) {
      throw InvalidArgumentError(str("an update of '", target.shard->name,
                                     "' names a shard twice: a variable and its slots are "
                                     "different ones"));
    }
    for (size_t i = 0; i < count; ++i) locks_[i] = std::unique_lock(*mutexes[i]);
  }

 private:
  std::array<std::unique_lock<std::mutex>, optim::kMaxSlots + 1> locks_;
};

VariableStore::Target VariableStore::target_of(const StoreOp& op) const {
  Target target;
  target.shard = find_locked(std::visit([](const auto& known) { return known.key; }, op));
  const auto* update = std::get_if<UpdateShard>(&op);
  if (update == nullptr) return target;
  if (static_cast<int>(update->slots.size()) != update->rule->num_slots()) {
    throw InvalidArgumentError(str("an update of '", target.shard->name, "' by ",
                                   update->rule->name(), " names ", update->slots.size(),
                                   " slots; it has ", update->rule->num_slots()));
  }
  for (size_t i = 0; i < update->slots.size(); ++i) target.slots[i] = find_locked(update->slots[i]);
  return target;
}

std::vector<VariableStore::Target> VariableStore::targets_of(
    const std::vector<StoreOp>& ops) const {
  std::vector<Target> targets;
  targets.reserve(ops.size());
  const std::shared_lock lock(mutex_);
  for (const StoreOp& op : ops) targets.push_back(target_of(op));
  return targets;
}

bool VariableStore::apply(uint64_t token, const std::vector<StoreOp>& ops) {
  const std::vector<Target> targets = targets_of(ops);
  for (size_t i = 0; i < ops.size(); ++i) check(ops[i], targets[i]);
  const std::optional<size_t> first = tokens_.begin(token);
  if (!first) return false;
  size_t next = *first;
  try {
    while (next < ops.size()) {
      assign_together(ops, targets, next);
      if (next == ops.size()) break;
      run(ops[next], targets[next]);
      ++next;
    }
  } catch (...) {
    tokens_.stop(token, next);
    throw;
  }
  operations_ += static_cast<int64_t>(ops.size());
  tokens_.end(token);
  return true;
}

void VariableStore::forget_tokens_below(uint64_t token) { tokens_.forget_below(token); }

void VariableStore::check(const StoreOp& op, const Target& target) {
  Shard* const shard = target.shard.get();
  std::visit(
      Overloads{[&](const AssignShard& assign) {
                  const std::lock_guard lock(shard->mutex);
                  check_same_form(shard->name, "the value assigned", assign.operand, shard->value);
                  if (assign.op == AssignOp::kSub && assign.operand.scalar_type() == at::kBool) {
                    throw InvalidArgumentError(
                        str("'", shard->name, "' is bool, from which nothing can be subtracted"));
                  }
                },
                [&](const ScatterShard& scatter) {
                  const std::lock_guard lock(shard->mutex);
                  check_rows(shard->name, scatter_name(scatter.op), scatter.indices, scatter.values,
                             shard->value, false);
                },
                [&](const UpdateShard& update) { check_update(update, target); }},
      op);
}

// Also what the rule would refuse in the middle of the push.
void VariableStore::check_update(const UpdateShard& update, const Target& target) {
  const LockedUpdate locked(update, target);
  const Tensor& value = target.shard->value;
  const std::string& name = target.shard->name;
  if (value.scalar_type() != float32 && value.scalar_type() != float64) {
    throw InvalidArgumentError(str("an update of '", name, "', which is ", form_of(value), ", by ",
                                   update.rule->name(), ": it updates float32 and float64"));
  }
  if (update.indices.defined()) {
    check_rows(name, "the gradient", update.indices, update.gradient, value, true);
  } else {
    check_same_form(name, "the gradient", update.gradient, value);
  }
  check_slots(update, target);
  update.rule->prepare(update.learning_rate, update.iteration);
  if (update.constraint) optim::check_projection(*update.constraint, value.sizes(), name);
}

void VariableStore::check_slots(const UpdateShard& update, const Target& target) {
  const Tensor& value = target.shard->value;
  const bool are_like_value = !update.rule->updates_whole_variables();
  const auto specs = are_like_value ? std::vector<optim::SlotSpec>() : update.rule->slots();
  for (size_t i = 0; i < update.slots.size(); ++i) {
    const Tensor& slot = target.slots[i]->value;
    const bool fits = !are_like_value && slot.scalar_type() == value.scalar_type() &&
                      slot.sizes() == optim::slot_shape(specs[i].form, value.sizes());
    if (!fits) check_same_form(target.shard->name, "a slot", slot, value);
  }
}

// In place, unless somebody still reads the value.
Tensor& VariableStore::writable(Shard& shard) {
  if (shard.value.use_count() > 1 || shard.value.storage().use_count() > 1) {
    shard.value = shard.value.clone();
  }
  ++shard.version;
  return shard.value;
}

void VariableStore::count_staleness(const UpdateShard& update, const Shard& shard) {
  if (update.based_on < 0 || update.based_on > shard.version) return;
  ++updates_;
  staleness_ += shard.version - update.based_on;
}

void VariableStore::assign(const AssignShard& assignment, Shard& shard) {
  if (assignment.op == AssignOp::kAssign && is_sole_owner(assignment.operand)) {
    shard.value = assignment.operand;  // what came in a message
    ++shard.version;
    return;
  }
  Tensor& value = writable(shard);
  switch (assignment.op) {
    case AssignOp::kAssign:
      value.copy_(assignment.operand);
      break;
    case AssignOp::kAdd:
      value.add_(assignment.operand);
      break;
    case AssignOp::kSub:
      value.sub_(assignment.operand);
      break;
  }
}

void VariableStore::assign_together(const std::vector<StoreOp>& ops,
                                    const std::vector<Target>& targets, size_t& next) {
  const at::NoGradGuard no_grad;
  size_t end = next;
  std::vector<std::mutex*> mutexes;
  for (; end < ops.size(); ++end) {
    Shard& shard = *targets[end].shard;
    if (!std::holds_alternative<AssignShard>(ops[end]) || !shard.is_small) break;
    mutexes.push_back(&shard.mutex);
  }
  const LockedTogether locked(std::move(mutexes));
  for (; next < end; ++next) assign(std::get<AssignShard>(ops[next]), *targets[next].shard);
}

void VariableStore::run(const StoreOp& op, const Target& target) {
  const at::NoGradGuard no_grad;
  Shard& shard = *target.shard;
  std::visit(Overloads{[&](const AssignShard& assignment) {
                         const std::lock_guard lock(shard.mutex);
                         assign(assignment, shard);
                       },
                       [&](const ScatterShard& scatter) {
                         const std::lock_guard lock(shard.mutex);
                         scatter_rows(writable(shard), scatter.op,
                                      {.values = scatter.values, .indices = scatter.indices});
                       },
                       [&](const UpdateShard& update) { run_update(update, target); }},
             op);
}

void VariableStore::run_update(const UpdateShard& update, const Target& target) {
  const LockedUpdate locked(update, target);
  count_staleness(update, *target.shard);
  std::array<void*, optim::kMaxSlots> pointers{};
  for (size_t i = 0; i < update.slots.size(); ++i) {
    pointers[i] = writable(*target.slots[i]).data_ptr();
  }
  Tensor& value = writable(*target.shard);
  const auto scalars = update.rule->prepare(update.learning_rate, update.iteration);
  apply_rule(*update.rule, scalars, value, pointers.data(), update.gradient, update.indices);
  if (update.constraint) value.copy_(optim::Constraint(*update.constraint)(value));
}

}  // namespace cohort::internal
