// How a VariableStore checks and applies the operations of a push.
#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
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

// What an update reads and writes, locked: in one order whatever it names, so that two never wait for each other.
class VariableStore::LockedUpdate {
 public:
  // Errors: NotFound, InvalidArgument (a shard that is named twice). The update has kMaxSlots at most.
  LockedUpdate(const VariableStore& store, const UpdateShard& update)
      : value(store.find(update.key)) {
    std::array<std::mutex*, optim::kMaxSlots + 1> mutexes{&value->mutex};
    const size_t count = update.slots.size() + 1;
    for (size_t i = 1; i < count; ++i) {
      slots[i - 1] = store.find(update.slots[i - 1]);
      mutexes[i] = &slots[i - 1]->mutex;
    }
    const auto end = mutexes.begin() + static_cast<std::ptrdiff_t>(count);
    std::sort(mutexes.begin(), end, std::less<>());
    if (std::adjacent_find(mutexes.begin(), end) != end) {
      throw InvalidArgumentError(str("an update of '", value->name,
                                     "' names a shard twice: a variable and its slots are "
                                     "different ones"));
    }
    for (size_t i = 0; i < count; ++i) locks_[i] = std::unique_lock(*mutexes[i]);
  }

  ShardPtr value;
  std::array<ShardPtr, optim::kMaxSlots> slots;

 private:
  std::array<std::unique_lock<std::mutex>, optim::kMaxSlots + 1> locks_;
};

bool VariableStore::apply(uint64_t token, const std::vector<StoreOp>& ops) {
  for (const StoreOp& op : ops) check(op);
  const std::optional<size_t> first = tokens_.begin(token);
  if (!first) return false;
  size_t next = *first;
  try {
    while (next < ops.size()) {
      assign_together(ops, next);
      if (next == ops.size()) break;
      run(ops[next]);
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

void VariableStore::check(const StoreOp& op) const {
  std::visit(
      Overloads{[&](const AssignShard& assign) {
                  const ShardPtr shard = find(assign.key);
                  const std::lock_guard lock(shard->mutex);
                  check_same_form(shard->name, "the value assigned", assign.operand, shard->value);
                  if (assign.op == AssignOp::kSub && assign.operand.scalar_type() == at::kBool) {
                    throw InvalidArgumentError(
                        str("'", shard->name, "' is bool, from which nothing can be subtracted"));
                  }
                },
                [&](const ScatterShard& scatter) {
                  const ShardPtr shard = find(scatter.key);
                  const std::lock_guard lock(shard->mutex);
                  check_rows(shard->name, scatter_name(scatter.op), scatter.indices, scatter.values,
                             shard->value, false);
                },
                [&](const UpdateShard& update) { check_update(update); }},
      op);
}

// Also what the rule would refuse in the middle of the push.
void VariableStore::check_update(const UpdateShard& update) const {
  if (static_cast<int>(update.slots.size()) != update.rule->num_slots()) {
    throw InvalidArgumentError(str("an update of '", find(update.key)->name, "' by ",
                                   update.rule->name(), " names ", update.slots.size(),
                                   " slots; it has ", update.rule->num_slots()));
  }
  const LockedUpdate locked(*this, update);
  const Tensor& value = locked.value->value;
  const std::string& name = locked.value->name;
  if (value.scalar_type() != float32 && value.scalar_type() != float64) {
    throw InvalidArgumentError(str("an update of '", name, "', which is ", form_of(value), ", by ",
                                   update.rule->name(), ": it updates float32 and float64"));
  }
  if (update.indices.defined()) {
    check_rows(name, "the gradient", update.indices, update.gradient, value, true);
  } else {
    check_same_form(name, "the gradient", update.gradient, value);
  }
  for (size_t i = 0; i < update.slots.size(); ++i) {
    check_same_form(name, "a slot", locked.slots[i]->value, value);
  }
  update.rule->prepare(update.learning_rate, update.iteration);
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

void VariableStore::assign_together(const std::vector<StoreOp>& ops, size_t& next) {
  const at::NoGradGuard no_grad;
  std::vector<ShardPtr> shards;
  for (size_t i = next; i < ops.size(); ++i) {
    const auto* assignment = std::get_if<AssignShard>(&ops[i]);
    if (assignment == nullptr) break;
    ShardPtr shard = find(assignment->key);
    if (!shard->is_small) break;
    shards.push_back(std::move(shard));
  }
  const LockedTogether locked(shards);
  for (const ShardPtr& shard : shards) {
    assign(std::get<AssignShard>(ops[next]), *shard);
    ++next;
  }
}

void VariableStore::run(const StoreOp& op) {
  const at::NoGradGuard no_grad;
  std::visit(Overloads{[&](const AssignShard& assignment) {
                         const ShardPtr shard = find(assignment.key);
                         const std::lock_guard lock(shard->mutex);
                         assign(assignment, *shard);
                       },
                       [&](const ScatterShard& scatter) {
                         const ShardPtr shard = find(scatter.key);
                         const std::lock_guard lock(shard->mutex);
                         scatter_rows(writable(*shard), scatter.op,
                                      {.values = scatter.values, .indices = scatter.indices});
                       },
                       [&](const UpdateShard& update) { run_update(update); }},
             op);
}

void VariableStore::run_update(const UpdateShard& update) {
  const LockedUpdate locked(*this, update);
  count_staleness(update, *locked.value);
  std::array<void*, optim::kMaxSlots> pointers{};
  for (size_t i = 0; i < update.slots.size(); ++i) {
    pointers[i] = writable(*locked.slots[i]).data_ptr();
  }
  Tensor& value = writable(*locked.value);
  const auto scalars = update.rule->prepare(update.learning_rate, update.iteration);
  apply_rule(*update.rule, scalars, value, pointers.data(), update.gradient, update.indices);
}

}  // namespace cohort::internal
