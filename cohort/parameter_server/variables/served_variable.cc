#include "cohort/parameter_server/variables/served_variable.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/program/task_id.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/variables/placement.h"
#include "cohort/parameter_server/variables/read_cache.h"
#include "cohort/parameter_server/variables/row_lookup.h"
#include "cohort/parameter_server/variables/shard_variable.h"

namespace cohort::internal {

// Another program has made it, from other data for instance.
void ServedVariable::check_part(size_t index, const Tensor& part) const {
  std::vector<int64_t> expected(shape().begin(), shape().end());
  if (shards_.size() > 1) expected[0] = shards_[index].rows.size();
  if (part.sizes() == at::IntArrayRef(expected) && part.scalar_type() == dtype()) return;
  throw InvalidArgumentError(
      str("variable '", shard_name(index), "' is ", dtype_name(dtype()), ' ', shape_str(expected),
          " in this task, but ", TaskId{kPs, shards_[index].place.ps}, " has it as ",
          describe(part), "; make the same variables in the program of every task"));
}

Tensor ServedVariable::whole(std::span<const VariableStore::Value> parts) const {
  for (size_t i = 0; i < parts.size(); ++i) check_part(i, parts[i].tensor);
  return together(parts);
}

Tensor ServedVariable::together(std::span<const VariableStore::Value> parts) {
  if (parts.size() == 1) return parts[0].tensor;
  std::vector<Tensor> tensors;
  for (const VariableStore::Value& part : parts) tensors.push_back(part.tensor);
  return at::cat(tensors);
}

ServedVariable::ServedVariable(const std::shared_ptr<ParameterServerCore>& core,
                               distribute::VariableSpec spec, std::vector<Shard> shards)
    : VariableImpl(core, std::move(spec)),
      server_core_(core),
      shards_(std::move(shards)),
      views_([this] { return make_view(); }) {}

ServedVariable::~ServedVariable() {
  try {
    std::vector<StoreClient::Release> shards;
    for (size_t i = 0; i < shards_.size(); ++i) {
      shards.push_back({shards_[i].place, shard_name(i)});
    }
    server_core_->release(std::move(shards));
  } catch (const std::exception&) {  // no memory: they stay as long as this coordinator
  }
}

const char* ServedVariable::kind() const {
  return shards_.size() > 1 ? "ShardedVariable" : "Variable";
}

std::string ServedVariable::shard_name(size_t index) const {
  return shards_.size() == 1 ? name() : str(name(), "/part_", index);
}

Tensor ServedVariable::part_of(const Tensor& whole, const Shard& shard) const {
  if (shards_.size() == 1) return whole;
  return whole.narrow(0, shard.rows.begin, shard.rows.size());
}

std::vector<std::shared_ptr<VariableImpl>> ServedVariable::shards() {
  std::vector<std::shared_ptr<VariableImpl>> variables;
  if (shards_.size() == 1) return variables;
  for (size_t i = 0; i < shards_.size(); ++i) {
    variables.push_back(std::make_shared<ShardVariable>(shared_from_this(), i));
  }
  return variables;
}

std::string ServedVariable::device() const {
  if (shards_.size() == 1) return device_of_ps(shards_[0].place.ps);
  throw FailedPreconditionError(str("variable '", name(), "' lies in ", shards_.size(),
                                    " shards on several devices; ask each of its shards()"));
}

// merge_call runs across replicas, on the thread of one of them.
ServedVariable::Caller ServedVariable::caller(const char* operation) const {
  Caller caller{.replica = calling_replica(operation)};
  const ContextFrame* frame = current_frame();
  while (frame != nullptr && (frame->core != server_core_.get() || frame->replica == nullptr)) {
    frame = frame->parent;
  }
  caller.in_step = frame != nullptr;
  return caller;
}

void ServedVariable::make_writable(View& view, bool keeps_elements) {
  const Tensor shared = view.value;
  const auto has_it = [&](const Tensor& leaf) {
    return leaf.defined() && leaf.is_alias_of(shared);
  };
  const auto leaves = std::count_if(view.leaves.begin(), view.leaves.end(), has_it);
  if (shared.storage().use_count() == static_cast<size_t>(leaves) + 1) return;
  view.value = keeps_elements ? shared.clone() : at::empty_like(shared);
  for (Tensor& leaf : view.leaves) {
    if (has_it(leaf)) leaf.set_data(view.value);
  }
}

void ServedVariable::mark_written(View& view) {
  for (const Tensor& leaf : view.leaves) {
    if (leaf.defined()) leaf.unsafeGetTensorImpl()->bump_version();
  }
}

std::unique_ptr<ServedVariable::View> ServedVariable::make_view() const {
  auto view = std::make_unique<View>();
  view->versions.assign(shards_.size(), -1);
  view->row_versions.assign(shards_.size(), -1);
  return view;
}

// The elements of a leaf without values are one and the same, which nobody reads.
Tensor& ServedVariable::leaf_of(View& view, const Replica& replica) const {
  const at::NoGradGuard no_grad;
  view.leaves.resize(static_cast<size_t>(server_core_->num_local_replicas()));
  Tensor& leaf = view.leaves[static_cast<size_t>(replica.local_replica_id())];
  if (!leaf.defined()) {
    leaf = at::zeros({}, dtype()).expand(shape()).variable_data();
    leaf.set_requires_grad(trainable());
  }
  if (view.value.defined() && leaf.data_ptr() != view.value.data_ptr()) leaf.set_data(view.value);
  return leaf;
}

Tensor ServedVariable::leaf_of(View& view, const Caller& caller) const {
  return caller.replica == nullptr ? outside_leaf() : leaf_of(view, *caller.replica);
}

void ServedVariable::bind_component(size_t replica, Tensor leaf) {
  if (leaf.sizes() != shape() || leaf.scalar_type() != dtype() || !leaf.device().is_cpu()) {
    throw InvalidArgumentError(str("variable '", name(), "' is ", dtype_name(dtype()), " ",
                                   shape_str(shape()), ", but the tensor to bind is ",
                                   describe(leaf)));
  }
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  const at::NoGradGuard no_grad;
  view.leaves.resize(static_cast<size_t>(server_core_->num_local_replicas()));
  leaf.set_data(view.value.defined() ? view.value : at::zeros({}, dtype()).expand(shape()));
  view.leaves[replica] = std::move(leaf);
}

bool ServedVariable::pulls_next(const View& view) const {
  return view.value.defined() && (view.is_read || (shards_.size() == 1 && !view.is_table));
}

bool ServedVariable::pulls_next() const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  return pulls_next(view);
}

bool ServedVariable::begin_step() const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  view.rows.clear();
  view.row_versions.assign(shards_.size(), -1);
  view.looked_up_before = std::exchange(view.looked_up, Tensor());
  const bool is_pulled = pulls_next(view);
  view.is_read = false;
  if (!view.value.defined()) return false;
  if (is_pulled) return true;
  drop_value(view);  // the last step did not need all of a table: the task need not hold it
  return false;
}

void ServedVariable::drop_value(View& view) const {
  const at::NoGradGuard no_grad;
  view.value = Tensor();
  view.versions.assign(shards_.size(), -1);
  for (Tensor& leaf : view.leaves) {
    if (leaf.defined()) leaf.set_data(at::zeros({}, dtype()).expand(shape()));
  }
}

int64_t ServedVariable::version_of_shard(size_t index) const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  return view.value.defined() ? view.versions[index] : view.row_versions[index];
}

void ServedVariable::add_known(std::vector<StoreClient::Known>& shards) const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards.push_back({shards_[i].place, view.versions[i]});
  }
}

void ServedVariable::take(std::span<const VariableStore::Value> values) const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  take(view, values);
}

void ServedVariable::take(View& view, std::span<const VariableStore::Value> values) const {
  const at::NoGradGuard no_grad;
  const auto is_missing = [](const VariableStore::Value& value) { return value.is_missing(); };
  if (std::any_of(values.begin(), values.end(), is_missing)) return drop_value(view);
  const auto has_come = [](const VariableStore::Value& value) { return value.tensor.defined(); };
  if (std::none_of(values.begin(), values.end(), has_come)) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (has_come(values[i])) check_part(i, values[i].tensor);
  }
  if (view.value.defined()) {
    make_writable(view, !std::all_of(values.begin(), values.end(), has_come));
  } else {
    view.value = at::empty(shape(), at::dtype(dtype()));
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!has_come(values[i])) continue;
    part_of(view.value, shards_[i]).copy_(values[i].tensor);
    view.versions[i] = values[i].version;
  }
  mark_written(view);
}

ServedVariable::View& ServedVariable::view_in_step(Lock& lock) const {
  View& view = views_.get();
  lock = Lock(view.mutex);
  if (!std::exchange(view.is_listed, true)) {
    server_core_->step().use(std::const_pointer_cast<ServedVariable>(shared_from_this()));
  }
  return view;
}

ServedVariable::View& ServedVariable::whole_in_step(Lock& lock) const {
  View& view = view_in_step(lock);
  view.is_read = true;
  if (view.value.defined()) return view;
  lock.unlock();
  std::vector<StoreClient::Known> known;
  for (const Shard& shard : shards_) known.push_back({shard.place, -1, name()});
  const auto values = server_core_->store().read(known);
  lock.lock();
  if (view.value.defined()) return view;
  take(view, values);
  if (!view.rows.empty()) {  // they stay as the step has read or written them
    view.value.index_copy_(0, view.rows.ids(), view.rows.rows());
    view.versions.assign(shards_.size(), -1);
    view.rows.clear();
  }
  return view;
}

Tensor ServedVariable::fetch() const {
  std::vector<StoreClient::Known> known;
  for (const Shard& shard : shards_) known.push_back({shard.place, -1, name()});
  const auto values = server_core_->store().read(known);
  return whole(values);  // nobody else has what was received
}

Tensor ServedVariable::outside_leaf() const {
  std::call_once(outside_leaf_made_, [this] {
    const at::NoGradGuard no_grad;
    outside_leaf_ = at::zeros({}, dtype()).expand(shape()).variable_data();
    outside_leaf_.set_requires_grad(trainable());
  });
  return outside_leaf_;
}

Tensor ServedVariable::read_outside() const {
  CachedReads::Entry* cached = cached_entry(*this);
  if (cached == nullptr) return fetch();
  if (!cached->value.defined()) cached->value = fetch();
  return cached->value;
}

Tensor ServedVariable::read() const {
  if (is_tracing()) return at::zeros(shape(), at::dtype(dtype()));
  const Caller caller = this->caller("read");
  if (!caller.in_step) return stands_for(outside_leaf(), read_outside());
  server_core_->step().see_updates(*this);
  CachedReads::Entry* cached = cached_entry(*this);
  Lock lock;
  View& view = whole_in_step(lock);
  const Tensor leaf = leaf_of(view, caller);
  if (cached == nullptr) {
    // Across replicas it stays as it was read: who writes then copies it.
    return caller.replica == nullptr ? stands_for(leaf, view.value.detach()) : leaf;
  }
  if (!cached->value.defined()) cached->value = view.value.clone();
  return stands_for(leaf, cached->value);
}

std::vector<Tensor> ServedVariable::read_together(
    std::span<const distribute::Variable> variables) const {
  std::vector<const ServedVariable*> served;
  for (const distribute::Variable& variable : variables) {
    const auto* one = dynamic_cast<const ServedVariable*>(&variable.impl());
    if (one != nullptr && one->server_core_ == server_core_) served.push_back(one);
  }
  std::vector<Tensor> values;
  // A step has pulled them together; what a scope has read stays as it was.
  const bool is_fetched = served.size() == variables.size() && !is_tracing() &&
                          cached_reads() == nullptr && !in_step("read");
  if (!is_fetched) {
    for (const distribute::Variable& variable : variables) values.push_back(variable.value());
    return values;
  }
  std::vector<StoreClient::Known> known;
  for (const ServedVariable* one : served) {
    for (const Shard& shard : one->shards_) known.push_back({shard.place, -1, one->name()});
  }
  const std::vector<VariableStore::Value> parts = server_core_->store().read(known);
  std::span<const VariableStore::Value> rest = parts;
  for (const ServedVariable* one : served) {
    values.push_back(stands_for(one->outside_leaf(), one->whole(rest.first(one->shards_.size()))));
    rest = rest.subspan(one->shards_.size());
  }
  return values;
}

Tensor ServedVariable::tape_source() const {
  const Replica* replica = is_tracing() ? nullptr : calling_replica("read");
  if (replica == nullptr) return outside_leaf();
  Lock lock;
  View& view = view_in_step(lock);
  return leaf_of(view, *replica);
}

}  // namespace cohort::internal
