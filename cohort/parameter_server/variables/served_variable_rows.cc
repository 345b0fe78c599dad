// How a ServedVariable's rows are looked up, in a step and outside.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/step/replica_context.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/variables/read_cache.h"
#include "cohort/parameter_server/variables/row_lookup.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

using distribute::ReplicaContext;

namespace {

std::vector<int64_t> looked_up_shape(const Tensor& ids, at::IntArrayRef variable) {
  std::vector<int64_t> shape = ids.sizes().vec();
  shape.insert(shape.end(), variable.begin() + 1, variable.end());
  return shape;
}

// Memory of its own: the caller may change his while a step still needs the ids.
Tensor own_ids(const Tensor& ids) {
  const Tensor flat = ids.detach().to(at::kCPU, int64).reshape({-1}).contiguous();
  return flat.is_alias_of(ids) ? flat.clone() : flat;
}

// Asked for ahead with a push, at most: more are seldom the same in the next step.
constexpr int64_t kMostRowsAhead = 4096;

bool mostly_the_same(const Tensor& now, const Tensor& before) {
  const int64_t in_both = (positions_in(before, now) >= 0).sum().item<int64_t>();
  return 4 * in_both >= 3 * std::max(now.numel(), before.numel());
}

}  // namespace

void ServedVariable::add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) const {
  for (const ShardIds& part : split_ids(ids, shape()[0], static_cast<int64_t>(shards_.size()))) {
    rows.push_back({shards_[part.shard].place, part.ids});
  }
}

// One call to each ps task that has any of the rows, all at once.
std::vector<VariableStore::Value> ServedVariable::fetch_parts(const Tensor& ids) const {
  std::vector<StoreClient::Rows> rows;
  add_rows(ids, rows);
  return server_core_->store().read_rows(rows);
}

Tensor ServedVariable::fetch_rows(const Tensor& ids) const { return together(fetch_parts(ids)); }

void ServedVariable::read_rows_into(View& view, Lock& lock, const Tensor& ids) const {
  const Tensor missing = view.rows.missing(ids);
  if (missing.numel() == 0) return;
  lock.unlock();
  const std::vector<VariableStore::Value> parts = fetch_parts(missing);
  lock.lock();
  if (!view.value.defined()) add_rows(view, missing, parts);
}

// Versions as of the oldest row that a gradient may be taken by.
void ServedVariable::add_rows(View& view, const Tensor& ids,
                              std::span<const VariableStore::Value> parts) const {
  const bool has_none = view.rows.empty();
  size_t next = 0;
  for (const ShardIds& part : split_ids(ids, shape()[0], static_cast<int64_t>(shards_.size()))) {
    int64_t& version = view.row_versions[part.shard];
    const int64_t read = parts[next++].version;
    version = has_none || version > read ? read : version;
  }
  view.rows.add(ids, together(parts));
}

void ServedVariable::take_rows(const Tensor& ids,
                               std::span<const VariableStore::Value> parts) const {
  int64_t count = 0;
  for (const VariableStore::Value& part : parts) {
    const Tensor& rows = part.tensor;
    if (!rows.defined() || rows.scalar_type() != dtype() ||
        rows.sizes().slice(1) != shape().slice(1)) {
      throw DataLossError(
          str("ps tasks have answered with other rows than those of '", name(), "'"));
    }
    count += rows.size(0);
  }
  if (count != ids.numel()) {
    throw DataLossError(str("ps tasks have answered with ", count, " rows of '", name(),
                            "' instead of ", ids.numel()));
  }
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  if (!view.value.defined()) add_rows(view, ids, parts);
}

void ServedVariable::note_lookup(View& view, const Tensor& ids) {
  if (ids.numel() > kMostRowsAhead) return;
  view.looked_up =
      view.looked_up.defined() ? distinct_rows(at::cat({view.looked_up, ids})).ids : ids;
}

Tensor ServedVariable::rows_for_next() const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  const Tensor &now = view.looked_up, &before = view.looked_up_before;
  if (view.value.defined() || !now.defined() || !before.defined()) return Tensor();
  return mostly_the_same(now, before) ? now : Tensor();
}

Tensor ServedVariable::rows_outside(const Tensor& ids) const {
  CachedReads::Entry* cached = cached_entry(*this);
  if (cached == nullptr) return fetch_rows(ids);
  if (cached->value.defined()) return gather_rows(cached->value, ids);
  const Tensor missing = cached->rows.missing(ids);
  if (missing.numel() > 0) cached->rows.add(missing, fetch_rows(missing));
  return gather_rows(cached->rows.rows(), positions_in(cached->rows.ids(), ids));
}

// No ps task is asked for no rows. The gradient has no rows either, but there is one.
Tensor ServedVariable::no_rows(const ReplicaContext* replica) const {
  const Tensor ids = at::empty({0}, int64);
  const Tensor rows = at::empty(looked_up_shape(ids, shape()), at::dtype(dtype()));
  if (replica == nullptr) return looked_up(outside_leaf(), rows, ids, {ids, ids});
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  return looked_up(leaf_of(view, *replica), rows, ids, {ids, ids});
}

Tensor ServedVariable::read_rows(const Tensor& ids) const {
  const std::vector<int64_t> result = looked_up_shape(ids, shape());
  if (is_tracing()) return at::zeros(result, at::dtype(dtype()));
  const Caller caller = this->caller("read");
  if (ids.numel() == 0) return no_rows(caller.replica).view(result);
  const Tensor flat = own_ids(ids);
  const DistinctRows distinct = distinct_rows(flat);
  if (!caller.in_step) {
    return looked_up(outside_leaf(), rows_outside(distinct.ids), distinct.positions, distinct)
        .view(result);
  }
  server_core_->step().see_updates(*this);
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  note_lookup(view, distinct.ids);
  if (!view.value.defined()) read_rows_into(view, lock, distinct.ids);
  const Tensor leaf = leaf_of(view, caller);
  if (view.value.defined()) return looked_up(leaf, view.value, flat, distinct).view(result);
  const Tensor positions =
      positions_in(view.rows.ids(), distinct.ids).index_select(0, distinct.positions);
  return looked_up(leaf, view.rows.rows(), positions, distinct).view(result);
}

// The rows are no copy if they are all that the step has of the variable.
Tensor ServedVariable::read_ascending_rows(const Tensor& ids) const {
  if (is_tracing() || ids.numel() == 0) return read_rows(ids);
  const Caller caller = this->caller("read");
  if (!caller.in_step) return read_rows(ids);
  server_core_->step().see_updates(*this);
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  note_lookup(view, ids);
  if (!view.value.defined()) read_rows_into(view, lock, ids);
  const Tensor leaf = leaf_of(view, caller);
  if (!view.value.defined() && at::equal(view.rows.ids(), ids)) {
    return looked_up_all(leaf, view.rows.rows(), ids);
  }
  const Tensor& rows = view.value.defined() ? view.value : view.rows.rows();
  const Tensor positions = view.value.defined() ? ids : positions_in(view.rows.ids(), ids);
  return looked_up(leaf, rows, positions, {ids, at::arange(ids.numel(), int64)});
}

}  // namespace cohort::internal
