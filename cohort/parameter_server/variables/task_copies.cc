#include "cohort/parameter_server/variables/task_copies.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/parameter_server/variables/row_lookup.h"

namespace cohort::internal {

namespace {

void write(const Tensor& target, AssignOp op, const Tensor& value) {
  switch (op) {
    case AssignOp::kAssign:
      target.copy_(value);
      break;
    case AssignOp::kAdd:
      target.add_(value);
      break;
    case AssignOp::kSub:
      target.sub_(value);
      break;
  }
}

}  // namespace

TaskCopies::TaskCopies(VariableHost& host, ShardLayout layout, bool trainable)
    : host_(host),
      layout_(std::move(layout)),
      trainable_(trainable),
      views_([this] { return make_view(); }) {}

void TaskCopies::make_writable(View& view, bool keeps_elements) {
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

void TaskCopies::bump_leaves(View& view) {
  for (const Tensor& leaf : view.leaves) {
    if (leaf.defined()) leaf.unsafeGetTensorImpl()->bump_version();
  }
}

void TaskCopies::mark_written(View& view) const {
  view.versions.assign(num_shards(), -1);
  bump_leaves(view);
}

std::unique_ptr<TaskCopies::View> TaskCopies::make_view() const {
  auto view = std::make_unique<View>();
  view->versions.assign(num_shards(), -1);
  view->row_versions.assign(num_shards(), -1);
  return view;
}

Tensor TaskCopies::no_elements() const {
  return at::zeros({}, layout_.dtype).expand(layout_.shape);
}

Tensor& TaskCopies::leaf_of(View& view, const Replica& replica) const {
  const at::NoGradGuard no_grad;
  view.leaves.resize(static_cast<size_t>(host_.num_local_replicas()));
  Tensor& leaf = view.leaves[static_cast<size_t>(replica.local_replica_id())];
  if (!leaf.defined()) {
    leaf = no_elements().variable_data();
    leaf.set_requires_grad(trainable_);
  }
  if (view.value.defined() && leaf.data_ptr() != view.value.data_ptr()) leaf.set_data(view.value);
  return leaf;
}

Tensor TaskCopies::leaf_of(View& view, const Replica* replica) {
  return replica == nullptr ? outside_leaf() : leaf_of(view, *replica);
}

void TaskCopies::bind(size_t replica, Tensor leaf) {
  if (leaf.sizes() != at::IntArrayRef(layout_.shape) || leaf.scalar_type() != layout_.dtype ||
      !leaf.device().is_cpu()) {
    throw InvalidArgumentError(str("variable '", layout_.name, "' is ", dtype_name(layout_.dtype),
                                   " ", shape_str(layout_.shape), ", but the tensor to bind is ",
                                   describe(leaf)));
  }
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  const at::NoGradGuard no_grad;
  view.leaves.resize(static_cast<size_t>(host_.num_local_replicas()));
  leaf.set_data(view.value.defined() ? view.value : no_elements());
  view.leaves[replica] = std::move(leaf);
}

Tensor TaskCopies::outside_leaf() {
  std::call_once(outside_leaf_made_, [this] {
    const at::NoGradGuard no_grad;
    outside_leaf_ = no_elements().variable_data();
    outside_leaf_.set_requires_grad(trainable_);
  });
  return outside_leaf_;
}

Tensor TaskCopies::leaf(const Replica& replica) {
  Lock lock;
  View& view = view_in_step(lock);
  return leaf_of(view, replica);
}

bool TaskCopies::pulls_next(const View& view, size_t shards) {
  return view.value.defined() && (view.is_read || (shards == 1 && !view.is_table));
}

bool TaskCopies::pulls_next() {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  return pulls_next(view, num_shards());
}

bool TaskCopies::begin_step() {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  view.rows.clear();
  view.row_versions.assign(num_shards(), -1);
  view.looked_up_before = std::exchange(view.looked_up, Tensor());
  const bool is_pulled = pulls_next(view, num_shards());
  view.is_read = false;
  if (!view.value.defined()) return false;
  if (is_pulled) return true;
  drop_value(view);  // the last step did not need all of a table: the task need not hold it
  return false;
}

void TaskCopies::drop_value(View& view) const {
  const at::NoGradGuard no_grad;
  view.value = Tensor();
  view.versions.assign(num_shards(), -1);
  for (Tensor& leaf : view.leaves) {
    if (leaf.defined()) leaf.set_data(no_elements());
  }
}

int64_t TaskCopies::version_of_shard(size_t index) {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  return view.value.defined() ? view.versions[index] : view.row_versions[index];
}

void TaskCopies::add_known(std::vector<StoreClient::Known>& shards) {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  for (size_t i = 0; i < num_shards(); ++i) {
    shards.push_back({layout_.shards[i].place, view.versions[i]});
  }
}

void TaskCopies::take(std::span<const VariableStore::Value> values) {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  take(view, values);
}

void TaskCopies::take(View& view, std::span<const VariableStore::Value> values) const {
  const at::NoGradGuard no_grad;
  const auto is_missing = [](const VariableStore::Value& value) { return value.is_missing(); };
  if (std::any_of(values.begin(), values.end(), is_missing)) return drop_value(view);
  const auto has_come = [](const VariableStore::Value& value) { return value.tensor.defined(); };
  if (std::none_of(values.begin(), values.end(), has_come)) return;
  for (size_t i = 0; i < values.size(); ++i) {
    if (has_come(values[i])) layout_.check_part(i, values[i].tensor);
  }
  if (view.value.defined()) {
    make_writable(view, !std::all_of(values.begin(), values.end(), has_come));
  } else {
    view.value = at::empty(layout_.shape, at::dtype(layout_.dtype));
  }
  for (size_t i = 0; i < num_shards(); ++i) {
    if (!has_come(values[i])) continue;
    layout_.part_of(view.value, layout_.shards[i]).copy_(values[i].tensor);
    view.versions[i] = values[i].version;
  }
  bump_leaves(view);
}

TaskCopies::View& TaskCopies::view_in_step(Lock& lock) {
  View& view = views_.get();
  lock = Lock(view.mutex);
  if (!std::exchange(view.is_listed, true)) host_.step().use(shared_from_this());
  return view;
}

TaskCopies::View& TaskCopies::whole_in_step(Lock& lock) {
  View& view = view_in_step(lock);
  view.is_read = true;
  if (view.value.defined()) return view;
  lock.unlock();
  std::vector<StoreClient::Known> known;
  layout_.add_all(known);
  const auto values = host_.store().read(known);
  lock.lock();
  if (view.value.defined()) return view;
  take(view, values);
  if (!view.rows.empty()) {  // they stay as the step has read or written them
    view.value.index_copy_(0, view.rows.ids(), view.rows.rows());
    view.versions.assign(num_shards(), -1);
    view.rows.clear();
  }
  return view;
}

Tensor TaskCopies::read(const Replica* replica, CachedReads::Entry* cached) {
  host_.step().see_updates(*this);
  Lock lock;
  View& view = whole_in_step(lock);
  const Tensor leaf = leaf_of(view, replica);
  if (cached == nullptr) {
    // Across replicas it stays as it was read: who writes then copies it.
    return replica == nullptr ? stands_for(leaf, view.value.detach()) : leaf;
  }
  if (!cached->value.defined()) cached->value = view.value.clone();
  return stands_for(leaf, cached->value);
}

void TaskCopies::assign(AssignOp op, const Tensor& value) {
  host_.step().see_updates(*this);
  const at::NoGradGuard no_grad;
  Lock lock;
  View& view = whole_in_step(lock);
  make_writable(view, op != AssignOp::kAssign);
  write(view.value, op, value);
  mark_written(view);
}

}  // namespace cohort::internal
