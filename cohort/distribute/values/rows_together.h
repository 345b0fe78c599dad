// IndexedSlices of several replicas as those of one sum or mean.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/values/values.h"
#include "cohort/ops/indexed_slices.h"

namespace cohort::internal {

using ReplicasTensors = distribute::PerReplica<Tensor>;

// The rows of all replicas, in their order; for MEAN divided by `replicas`, their number. `join`
// puts tensors of this task's replicas, and of those of other tasks, one after another along
// dimension 0.
// Errors: InvalidArgument (no components; one without values or indices; MEAN of bool), those of
// `join`.
IndexedSlices rows_together(distribute::ReduceOp op,
                            const distribute::PerReplica<IndexedSlices>& value, int64_t replicas,
                            FunctionRef<Tensor(const ReplicasTensors&)> join);

}  // namespace cohort::internal
