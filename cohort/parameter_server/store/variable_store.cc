#include "cohort/parameter_server/store/variable_store.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/parameter_server/store/locked_shards.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/store/shard_form.h"
#include "cohort/train/bundle/value_bytes.h"

namespace cohort::internal {
namespace {

// Assigning them and taking them for a read takes no time for which others would wait.
constexpr size_t kSmallBytes = size_t{4} << 10;

}  // namespace

std::string no_shard_text(const ShardKey& key, std::string_view variable) {
  return str("this task has no shard ", key.shard, " of variable ",
             variable.empty() ? decimal_digits(key.variable) : str("'", variable, "'"),
             ". Every task must make the same variables, in one order: compare what the chief and "
             "this worker make under the strategy's scope. And the chief must hold what its "
             "functions use: the end of its last handle of a variable frees the values");
}

bool VariableStore::create(const ShardKey& key, const std::string& name, Tensor value) {
  value = contiguous_elements(value);
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

void VariableStore::tie(const ShardKey& key, const ShardKey& owner) {
  const std::unique_lock lock(mutex_);
  if (!shards_.contains(owner)) throw NotFoundError(no_shard_text(owner));
  ties_.tie(key, owner);
}

void VariableStore::hold(const ShardKey& key) {
  const std::unique_lock lock(mutex_);
  if (const auto found = shards_.find(key); found != shards_.end()) found->second->is_held = true;
}

void VariableStore::release(const std::vector<NamedShard>& shards) {
  std::vector<ShardPtr> released;  // freed without the lock
  const std::unique_lock lock(mutex_);
  std::vector<ShardKey> going;
  for (const NamedShard& one : shards) {
    const auto found = shards_.find(one.key);
    if (found != shards_.end() && found->second->name == one.name) going.push_back(one.key);
  }
  while (!going.empty()) {
    const ShardKey key = going.back();
    going.pop_back();
    const auto found = shards_.find(key);
    if (found == shards_.end()) continue;
    released.push_back(std::move(found->second));
    shards_.erase(found);
    for (const ShardKey& other : ties_.release(key)) {
      const auto its = shards_.find(other);
      if (its != shards_.end() && !its->second->is_held) going.push_back(other);
    }
  }
}

VariableStore::ShardPtr VariableStore::find_if_there(const ShardKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = shards_.find(key);
  return found == shards_.end() ? nullptr : found->second;
}

VariableStore::ShardPtr VariableStore::find(const ShardKey& key) const {
  const std::shared_lock lock(mutex_);
  return find_locked(key);
}

VariableStore::ShardPtr VariableStore::find_locked(const ShardKey& key) const {
  const auto found = shards_.find(key);
  if (found != shards_.end()) return found->second;
  throw NotFoundError(no_shard_text(key));
}

VariableStore::Value VariableStore::value_of(const Shard& shard, int64_t known_version) const {
  if (shard.version == known_version) return {known_version, Tensor()};
  ++values_read_;
  bytes_read_ += static_cast<int64_t>(shard.value.nbytes());
  return {shard.version, shard.value};
}

std::vector<VariableStore::Value> VariableStore::read_together(
    const std::vector<Wanted>& shards) const {
  std::vector<Value> values(shards.size(), Value{Value::kNone, Tensor()});
  std::vector<ShardPtr> found;
  std::vector<std::mutex*> small;
  for (const Wanted& wanted : shards) {
    found.push_back(find_if_there(wanted.key));
    if (found.back() != nullptr && found.back()->is_small) {
      small.push_back(&found.back()->mutex);
    }
  }
  // Shards that may be locked for long come first, while no other lock is held.
  for (size_t i = 0; i < shards.size(); ++i) {
    if (found[i] == nullptr || found[i]->is_small) continue;
    const std::lock_guard lock(found[i]->mutex);
    values[i] = value_of(*found[i], shards[i].known_version);
  }
  const LockedTogether locked(std::move(small));
  for (size_t i = 0; i < shards.size(); ++i) {
    if (found[i] == nullptr || !found[i]->is_small) continue;
    values[i] = value_of(*found[i], shards[i].known_version);
  }
  return values;
}

// Rows are copied under the shard's lock: to hold the value instead would make the next update copy
// all of it.
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
      hold(values[i].key);
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
  load.operations = operations_;
  load.repeated = tokens_.repeated();
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
  ties_ = {};
  {
    const std::lock_guard kept_lock(kept_mutex_);
    kept_.clear();
    prepared_.clear();
    dropped_.clear();
  }
  updates_ = 0;
  staleness_ = 0;
  tokens_.forget_all();
}

}  // namespace cohort::internal
