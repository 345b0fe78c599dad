#include "cohort/distribute/variables/on_write_variable.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/variables/write_together.h"

namespace cohort::internal {

Tensor OnWriteVariable::read() const {
  const Replica* replica = owners_replica("read");
  if (replica != nullptr) return leaf(static_cast<size_t>(replica->local_replica_id()));
  return leaf(static_cast<size_t>(std::max(0, updated_component(*core()))));
}

void OnWriteVariable::assign(AssignOp op, const Tensor& value) {
  Replica* replica = owners_replica(assign_name(op));
  check_computes(*this, op);
  const Tensor checked = checked_value(value, assign_name(op));
  if (is_tracing()) return;
  if (replica != nullptr) return assign_in_replica(*replica, op, checked);
  const int updated = updated_component(*core());
  if (updated >= 0) return write(static_cast<size_t>(updated), op, checked);
  write_everywhere(op, checked);
}

// The others take the first one's result: `value` may be a component itself.
void OnWriteVariable::write_everywhere(AssignOp op, const Tensor& value) {
  write(0, op, value);
  for (const size_t i : distinct_components()) {
    if (i != 0) write(i, AssignOp::kAssign, component(0));
  }
}

void OnWriteVariable::assign_in_replica(Replica& replica, AssignOp op, const Tensor& value) {
  if (replica.num_replicas_in_sync() == 1) return write_everywhere(op, value);
  const std::string call = call_of_tasks(assign_name(op));
  assign_together(replica, {*this, name(), call}, op, value,
                  [&](const Tensor& one) { write_everywhere(op, one); });
}

void OnWriteVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  Replica* replica = owners_replica(scatter_name(op));
  check_computes(*this, op);
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  if (is_tracing()) return;
  if (replica != nullptr) return scatter_in_replica(*replica, op, checked);
  const int updated = updated_component(*core());
  if (updated < 0) return scatter_everywhere(op, std::move(checked));
  const auto own = static_cast<size_t>(updated);
  if (checked.values.is_alias_of(component(own))) checked.values = checked.values.clone();
  write_rows(own, op, checked);
}

void OnWriteVariable::scatter_everywhere(ScatterOp op, IndexedSlices slices) {
  for (const size_t i : distinct_components()) {
    if (slices.values.is_alias_of(component(i))) slices.values = slices.values.clone();
  }
  for (const size_t i : distinct_components()) write_rows(i, op, slices);
}

void OnWriteVariable::scatter_in_replica(Replica& replica, ScatterOp op,
                                         const IndexedSlices& slices) {
  if (replica.num_replicas_in_sync() == 1) return scatter_everywhere(op, slices);
  const std::string call = call_of_tasks(scatter_name(op));
  scatter_together(replica, {*this, name(), call}, op, slices,
                   [&](const IndexedSlices& all) { scatter_everywhere(op, all); });
}

}  // namespace cohort::internal
