// How rows of a task's copies are looked up and written.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/parameter_server/variables/row_lookup.h"
#include "cohort/parameter_server/variables/task_copies.h"

namespace cohort::internal {

namespace {

// Asked for ahead with a push, at most: more are seldom the same in the next step.
constexpr int64_t kMostRowsAhead = 4096;

bool mostly_the_same(const Tensor& now, const Tensor& before) {
  const int64_t in_both = (positions_in(before, now) >= 0).sum().item<int64_t>();
  return 4 * in_both >= 3 * std::max(now.numel(), before.numel());
}

}  // namespace

void TaskCopies::add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) {
  layout_.add_rows(ids, rows);
}

void TaskCopies::read_rows_into(View& view, Lock& lock, const Tensor& ids) {
  const Tensor missing = view.rows.missing(ids);
  if (missing.numel() == 0) return;
  lock.unlock();
  std::vector<StoreClient::Rows> rows;
  layout_.add_rows(missing, rows);
  const std::vector<VariableStore::Value> parts = host_.store().read_rows(rows);
  lock.lock();
  if (!view.value.defined()) add_rows(view, missing, parts);
}

// Versions as of the oldest row that a gradient may be taken by.
void TaskCopies::add_rows(View& view, const Tensor& ids,
                          std::span<const VariableStore::Value> parts) const {
  const bool has_none = view.rows.empty();
  const auto shards = static_cast<int64_t>(num_shards());
  size_t next = 0;
  for (const ShardIds& part : split_ids(ids, layout_.shape[0], shards)) {
    int64_t& version = view.row_versions[part.shard];
    const int64_t read = parts[next++].version;
    version = has_none || version > read ? read : version;
  }
  view.rows.add(ids, ShardLayout::together(parts));
}

void TaskCopies::take_rows(const Tensor& ids, std::span<const VariableStore::Value> parts) {
  int64_t count = 0;
  for (const VariableStore::Value& part : parts) {
    const Tensor& rows = part.tensor;
    if (!rows.defined() || rows.scalar_type() != layout_.dtype ||
        rows.sizes().slice(1) != at::IntArrayRef(layout_.shape).slice(1)) {
      throw DataLossError(
          str("ps tasks have answered with other rows than those of '", layout_.name, "'"));
    }
    count += rows.size(0);
  }
  if (count != ids.numel()) {
    throw DataLossError(str("ps tasks have answered with ", count, " rows of '", layout_.name,
                            "' instead of ", ids.numel()));
  }
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  if (!view.value.defined()) add_rows(view, ids, parts);
}

void TaskCopies::note_lookup(View& view, const Tensor& ids) {
  if (ids.numel() > kMostRowsAhead) return;
  view.looked_up =
      view.looked_up.defined() ? distinct_rows(at::cat({view.looked_up, ids})).ids : ids;
}

Tensor TaskCopies::rows_for_next() {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  const Tensor &now = view.looked_up, &before = view.looked_up_before;
  if (view.value.defined() || !now.defined() || !before.defined()) return Tensor();
  return mostly_the_same(now, before) ? now : Tensor();
}

Tensor TaskCopies::read_no_rows(const Replica& replica) {
  std::vector<int64_t> none = layout_.shape;
  none[0] = 0;
  const Tensor ids = at::empty({0}, int64);
  const Tensor rows = at::empty(none, at::dtype(layout_.dtype));
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  return looked_up(leaf_of(view, replica), rows, ids, {ids, ids});
}

Tensor TaskCopies::read_rows(const Replica* replica, const Tensor& ids,
                             const DistinctRows& distinct) {
  host_.step().see_updates(*this);
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  note_lookup(view, distinct.ids);
  if (!view.value.defined()) read_rows_into(view, lock, distinct.ids);
  const Tensor leaf = leaf_of(view, replica);
  if (view.value.defined()) return looked_up(leaf, view.value, ids, distinct);
  const Tensor positions =
      positions_in(view.rows.ids(), distinct.ids).index_select(0, distinct.positions);
  return looked_up(leaf, view.rows.rows(), positions, distinct);
}

// The rows are no copy if they are all that the step has of the variable.
Tensor TaskCopies::read_ascending_rows(const Replica* replica, const Tensor& ids) {
  host_.step().see_updates(*this);
  Lock lock;
  View& view = view_in_step(lock);
  view.is_table = true;
  note_lookup(view, ids);
  if (!view.value.defined()) read_rows_into(view, lock, ids);
  const Tensor leaf = leaf_of(view, replica);
  if (!view.value.defined() && at::equal(view.rows.ids(), ids)) {
    return looked_up_all(leaf, view.rows.rows(), ids);
  }
  const Tensor& rows = view.value.defined() ? view.value : view.rows.rows();
  const Tensor positions = view.value.defined() ? ids : positions_in(view.rows.ids(), ids);
  return looked_up(leaf, rows, positions, {ids, at::arange(ids.numel(), int64)});
}

void TaskCopies::scatter(ScatterOp op, const IndexedSlices& slices) {
  const at::NoGradGuard no_grad;
  Lock lock;
  View& view = view_in_step(lock);
  const DistinctRows distinct = distinct_rows(slices.indices);
  if (!view.value.defined()) read_rows_into(view, lock, distinct.ids);
  if (view.value.defined()) {
    make_writable(view, true);
    scatter_rows(view.value, op, slices);
    mark_written(view);
  } else {
    view.is_table = true;
    const Tensor places =
        positions_in(view.rows.ids(), distinct.ids).index_select(0, distinct.positions);
    scatter_rows(view.rows.writable_rows(), op, {.values = slices.values, .indices = places});
    view.row_versions.assign(num_shards(), -1);
  }
}

}  // namespace cohort::internal
