#include "cohort/distribute/values/rows_together.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/distribute/values/reduction.h"

namespace cohort::internal {

IndexedSlices rows_together(distribute::ReduceOp op,
                            const distribute::PerReplica<IndexedSlices>& value, int64_t replicas,
                            FunctionRef<Tensor(const ReplicasTensors&)> join) {
  if (value.size() == 0) {
    throw InvalidArgumentError("a reduction needs at least one component, but got none");
  }
  ReplicasTensors::Values values, indices;
  for (const IndexedSlices& component : value.values()) {
    if (!component.values.defined() || !component.indices.defined()) {
      throw InvalidArgumentError("IndexedSlices to reduce have no values or no indices");
    }
    values.push_back(component.values);
    indices.push_back(component.indices);
  }
  check_can_reduce(op, values[0]);
  IndexedSlices rows{.values = join(ReplicasTensors(std::move(values))),
                     .indices = join(ReplicasTensors(std::move(indices))),
                     .dense_shape = value.value(0).dense_shape};
  if (op == distribute::ReduceOp::MEAN) {
    rows.values = mean_of(rows.values, replicas, rows.values.scalar_type());
  }
  return rows;
}

}  // namespace cohort::internal
