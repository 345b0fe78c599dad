#include "cohort/parameter_server/store/variable_store.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/variables/row_ids.h"
#include "cohort/train/value_bytes.h"

namespace cohort::internal {
namespace {

template <class... Fns>
struct Overloads : Fns... {
  using Fns::operator()...;
};
template <class... Fns>
Overloads(Fns...) -> Overloads<Fns...>;

// Assigning them and taking them for a read takes no time for which others would wait.
constexpr size_t kSmallBytes = size_t{4} << 10;

std::string form_of(const Tensor& tensor) {
  return internal::str(dtype_name(tensor.scalar_type()), ' ', tensor.sizes());
}

void check_same_form(const std::string& name, const char* what, const Tensor& given,
                     const Tensor& value) {
  if (given.sizes() == value.sizes() && given.scalar_type() == value.scalar_type()) return;
  throw InvalidArgumentError(str(what, " of '", name, "' is ", form_of(given),
                                 ", but the variable's shard is ", form_of(value)));
}

// Whether nobody else has the tensor, nor any of its memory.
bool is_sole_owner(const Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1 && tensor.is_contiguous() &&
         tensor.storage().nbytes() == tensor.nbytes();
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

std::string no_shard_text(const ShardKey& key) {
  return str("this task has no shard ", key.shard, " of variable ", key.variable,
             ". Every task must make the same variables, in one order: compare what the chief and "
             "this worker make under the strategy's scope. And the chief must hold what its "
             "functions use: the end of its last handle of a variable frees the values");
}

bool VariableStore::create(const ShardKey& key, const std::string& name, Tensor value) {
  value = value.contiguous();
  const std::unique_lock lock(mutex_);
  if (const auto found = shards_.find(key); found != shards_.end()) {
    check_same(*found->second, key, name, value.sizes(), value.scalar_type());
    return false;
  }
  auto shard = std::make_shared<Shard>();
  shard->name = name;
  shard->value = std::move(value);
  shard->is_small = shard->value.nbytes() <= kSmallBytes;
  shard->version = first_version_;
  shards_[key] = std::move(shard);
  return true;
}

bool VariableStore::has(const ShardKey& key, const std::string& name, at::IntArrayRef shape,
                        DType dtype) const {
  const std::shared_lock lock(mutex_);
  const auto found = shards_.find(key);
  if (found == shards_.end()) return false;
  check_same(*found->second, key, name, shape, dtype);
  return true;
}

void VariableStore::check_same(const Shard& there, const ShardKey& key, const std::string& name,
                               at::IntArrayRef shape, DType dtype) {
  const std::lock_guard lock(there.mutex);
  if (there.name != name) {
    throw InvalidArgumentError(str("variable ", key.variable, " is '", there.name, "' here, not '",
                                   name, "': every task must create the same variables"));
  }
  if (there.value.sizes() == shape && there.value.scalar_type() == dtype) return;
  throw InvalidArgumentError(internal::str("the initial value of '", name, "' is ",
                                           dtype_name(dtype), ' ', shape_str(shape),
                                           ", but the variable's shard is ", form_of(there.value)));
}

void VariableStore::release(const std::vector<NamedShard>& shards) {
  std::vector<ShardPtr> released;  // freed without the lock
  const std::unique_lock lock(mutex_);
  for (const NamedShard& one : shards) {
    const auto found = shards_.find(one.key);
    if (found == shards_.end() || found->second->name != one.name) continue;
    released.push_back(std::move(found->second));
    shards_.erase(found);
  }
}

VariableStore::ShardPtr VariableStore::find_if_there(const ShardKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = shards_.find(key);
  return found == shards_.end() ? nullptr : found->second;
}

VariableStore::ShardPtr VariableStore::find(const ShardKey& key) const {
  if (ShardPtr shard = find_if_there(key)) return shard;
  throw NotFoundError(no_shard_text(key));
}

VariableStore::Value VariableStore::read(const ShardKey& key, int64_t known_version) const {
  const ShardPtr shard = find_if_there(key);
  if (shard == nullptr) return {Value::kNone, Tensor()};
  const std::lock_guard lock(shard->mutex);
  return value_of(*shard, known_version);
}

VariableStore::Value VariableStore::value_of(const Shard& shard, int64_t known_version) const {
  if (shard.version == known_version) return {known_version, Tensor()};
  ++values_read_;
  bytes_read_ += static_cast<int64_t>(shard.value.nbytes());
  return {shard.version, shard.value};
}

// Several shards, locked in the order in which updates lock theirs.
class VariableStore::LockedTogether {
 public:
  explicit LockedTogether(const std::vector<ShardPtr>& shards) {
    std::vector<std::mutex*> mutexes;
    for (const ShardPtr& shard : shards) mutexes.push_back(&shard->mutex);
    std::sort(mutexes.begin(), mutexes.end(), std::less<>());
    mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
    for (std::mutex* mutex : mutexes) locks_.emplace_back(*mutex);
  }

 private:
  std::vector<std::unique_lock<std::mutex>> locks_;
};

std::vector<VariableStore::Value> VariableStore::read_together(
    const std::vector<Wanted>& shards) const {
  std::vector<Value> values(shards.size(), Value{Value::kNone, Tensor()});
  std::vector<ShardPtr> found, small;
  for (const Wanted& wanted : shards) {
    found.push_back(find_if_there(wanted.key));
    if (found.back() != nullptr && found.back()->is_small) small.push_back(found.back());
  }
  // Those that may be locked for long come first, while no other lock is held.
  for (size_t i = 0; i < shards.size(); ++i) {
    if (found[i] == nullptr || found[i]->is_small) continue;
    const std::lock_guard lock(found[i]->mutex);
    values[i] = value_of(*found[i], shards[i].known_version);
  }
  const LockedTogether locked(small);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (found[i] == nullptr || !found[i]->is_small) continue;
    values[i] = value_of(*found[i], shards[i].known_version);
  }
  return values;
}

// Under the shard's lock: who held the value instead would make the next update copy all of it.
VariableStore::Value VariableStore::read_rows(const ShardKey& key, const Tensor& indices) const {
  const ShardPtr shard = find(key);
  const std::lock_guard lock(shard->mutex);
  const Tensor& value = shard->value;
  if (indices.dim() != 1 || indices.scalar_type() != int64 || value.dim() == 0) {
    throw InvalidArgumentError(str("rows of '", shard->name,
                                   "' are named by indices [n] of int64, ", "not by ",
                                   form_of(indices)));
  }
  const Tensor ids = indices.contiguous();
  const int64_t* id = ids.data_ptr<int64_t>();
  for (int64_t i = 0; i < ids.numel(); ++i) {
    if (id[i] >= 0 && id[i] < value.size(0)) continue;
    throw InvalidArgumentError(
        str("'", shard->name, "' has ", value.size(0), " rows, not row ", id[i]));
  }
  const Tensor rows = gather_rows(value, ids);
  rows_read_ += ids.numel();
  bytes_read_ += static_cast<int64_t>(rows.nbytes());
  return {shard->version, rows};
}

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
  const std::optional<size_t> first = begin(token);
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
    stop(token, next, ops.size());
    throw;
  }
  stop(token, next, ops.size());
  return true;
}

std::optional<size_t> VariableStore::begin(uint64_t token) {
  if (token == 0) return 0;
  std::unique_lock lock(tokens_mutex_);
  const auto known = [&] {
    return std::find_if(begun_.begin(), begun_.end(),
                        [token](const Begun& one) { return one.token == token; });
  };
  // Two sendings of one push may arrive at the same time.
  stopped_.wait(lock, [&] { return known() == begun_.end() || !known()->is_running; });
  if (tokens_.contains(token)) {
    ++repeated_;
    return std::nullopt;
  }
  if (const auto there = known(); there != begun_.end()) {
    there->is_running = true;
    return there->next;
  }
  begun_.push_back({.token = token});
  return 0;
}

void VariableStore::stop(uint64_t token, size_t next, size_t count) {
  const std::lock_guard lock(tokens_mutex_);
  const bool is_over = next >= count;
  if (is_over) operations_ += static_cast<int64_t>(count);
  if (token == 0) return;
  if (is_over) {
    tokens_.add(token);
    std::erase_if(begun_, [token](const Begun& one) { return one.token == token; });
  } else {
    for (Begun& one : begun_) {
      if (one.token == token) one = {.token = token, .next = next, .is_running = false};
    }
  }
  stopped_.notify_all();
}

void VariableStore::forget_tokens_below(uint64_t token) {
  const std::lock_guard lock(tokens_mutex_);
  tokens_.forget_below(token);
  std::erase_if(begun_, [token](const Begun& one) { return !one.is_running && one.token < token; });
}

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
  const Tensor gradient = update.gradient.contiguous();
  if (!update.indices.defined()) {
    update.rule->update(scalars, {.param = value.data_ptr(),
                                  .slots = pointers.data(),
                                  .gradient = gradient.data_ptr(),
                                  .size = value.numel(),
                                  .dtype = value.scalar_type()});
    return;
  }
  const Tensor indices = update.indices.contiguous();
  const int64_t rows = value.size(0);
  optim::update_rows(*update.rule, scalars,
                     {.param = value.data_ptr(),
                      .slots = pointers.data(),
                      .num_rows = rows,
                      .row_size = rows == 0 ? 0 : value.numel() / rows,
                      .gradient = gradient.data_ptr(),
                      .row_ids = indices.data_ptr<int64_t>(),
                      .num_row_ids = indices.numel(),
                      .dtype = value.scalar_type()});
}

void VariableStore::keep(uint64_t id, const std::vector<ShardKey>& keys) {
  std::vector<Tensor> values;
  for (const ShardKey& key : keys) {
    const ShardPtr shard = find(key);
    const std::lock_guard lock(shard->mutex);
    values.push_back(shard->value);
  }
  const std::lock_guard lock(kept_mutex_);
  check_not_dropped(id);
  kept_[id] = std::move(values);
}

void VariableStore::check_not_dropped(uint64_t id) const {
  if (!dropped_.contains(id)) return;
  throw FailedPreconditionError(
      str("values of number ", id, " come late: whoever wanted them has given them up"));
}

std::vector<Tensor> VariableStore::kept(uint64_t id) const {
  const std::lock_guard lock(kept_mutex_);
  const auto found = kept_.find(id);
  if (found != kept_.end()) return found->second;
  throw NotFoundError(str("this task keeps no values of number ", id,
                          " for a checkpoint; another coordinator may have taken it meanwhile"));
}

void VariableStore::drop_kept(uint64_t id) {
  const std::lock_guard lock(kept_mutex_);
  if (kept_.erase(id) == 0) dropped_.insert(id);
}

Tensor VariableStore::empty_like(const ShardKey& key) const {
  const ShardPtr shard = find(key);
  const std::lock_guard lock(shard->mutex);
  return empty_for_reading(shard->value.sizes(), shard->value.scalar_type());
}

void VariableStore::prepare(uint64_t id, std::vector<NewValue> values) {
  const std::lock_guard lock(kept_mutex_);
  check_not_dropped(id);
  prepared_[id] = std::move(values);
}

void VariableStore::prepare_more(uint64_t id, NewValue value) {
  if (value.new_shard.empty()) {
    const ShardPtr shard = find(value.key);
    const std::lock_guard lock(shard->mutex);
    check_same_form(shard->name, "the restored value", value.value, shard->value);
  } else {
    has(value.key, value.new_shard, value.value.sizes(), value.value.scalar_type());
  }
  const std::lock_guard lock(kept_mutex_);
  check_not_dropped(id);
  prepared_[id].push_back(std::move(value));
}

void VariableStore::adopt(uint64_t id) {
  std::vector<NewValue> values;
  {
    const std::lock_guard lock(kept_mutex_);
    const auto found = prepared_.find(id);
    if (found == prepared_.end()) {
      throw NotFoundError(
          str("this task has read no values of number ", id,
              " from a checkpoint; another coordinator may have taken it meanwhile"));
    }
    values = std::move(found->second);
    prepared_.erase(found);
  }
  std::vector<ShardPtr> shards;
  for (const NewValue& one : values) {
    shards.push_back(one.new_shard.empty() ? find(one.key) : nullptr);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (shards[i] == nullptr) {
      create(values[i].key, values[i].new_shard, std::move(values[i].value));
      continue;
    }
    const std::lock_guard lock(shards[i]->mutex);
    shards[i]->value = std::move(values[i].value);
    ++shards[i]->version;
  }
}

void VariableStore::drop_prepared(uint64_t id) {
  const std::lock_guard lock(kept_mutex_);
  prepared_.erase(id);
  dropped_.insert(id);
}

VariableStore::Load VariableStore::load() const {
  constexpr size_t kLargest = 3;
  Load load;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [key, shard] : shards_) {
      const std::lock_guard shard_lock(shard->mutex);
      ++load.shards;
      const auto bytes = static_cast<int64_t>(shard->value.nbytes());
      load.bytes += bytes;
      const auto place = std::find_if(load.largest.begin(), load.largest.end(),
                                      [bytes](const auto& other) { return other.bytes < bytes; });
      load.largest.insert(place, {shard->name, bytes});
      if (load.largest.size() > kLargest) load.largest.pop_back();
    }
  }
  const std::lock_guard lock(tokens_mutex_);
  load.operations = operations_;
  load.repeated = repeated_;
  load.values_read = values_read_;
  load.rows_read = rows_read_;
  load.bytes_read = bytes_read_;
  load.updates = updates_;
  load.staleness = staleness_;
  return load;
}

void VariableStore::clear(int64_t first_version) {
  const std::unique_lock lock(mutex_);
  first_version_ = first_version;
  shards_.clear();
  {
    const std::lock_guard kept_lock(kept_mutex_);
    kept_.clear();
    prepared_.clear();
    dropped_.clear();
  }
  updates_ = 0;
  staleness_ = 0;
  const std::lock_guard tokens_lock(tokens_mutex_);
  tokens_ = {};
  begun_.clear();
}

}  // namespace cohort::internal
