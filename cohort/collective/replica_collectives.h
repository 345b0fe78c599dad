// Collectives between replicas. Replicas of one task share memory: each adds one slice of all
// values directly from where they lie. Then the tasks combine their sums.
#pragma once

#include <string_view>

#include "cohort/collective/sync_group.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// The sum over all replicas, added in replica order within a task and then in the order of tasks:
// bitwise equal everywhere.
// Shapes: value [..], the same on every replica -> a new tensor of that shape, on value's device.
// Not differentiable. `what` names the call: replicas must agree on it. Collective. Errors:
// InvalidArgument (shapes or dtypes differ, naming both; a dtype that cannot be added), those of
// ThreadGroup::meet and of a Communicator's calls. A sparse value (COO) gives a sparse result with
// the rows of all replicas, in replica order, on the CPU and not coalesced, so that rows of one id,
// too, are added in replica order.
Tensor all_reduce_sum(SyncGroup& group, int local_replica, const Tensor& value,
                      const char* what = "all_reduce");
// The same of sparse values, for a caller that acts for all replicas of its task. COLLECTIVE over
// the tasks. `what` as above, of tasks; they must also agree on shape, dtype and sparse dimensions.
Tensor sum_sparse(SyncGroup& group, at::ArrayRef<Tensor> local_values, std::string_view what);

// The replicas' values concatenated along `axis`, in the order of replica ids.
// Shapes: value [.., n_r, ..], equal except along `axis` -> [.., sum of n_r, ..].
// Collective. Errors: InvalidArgument (rank 0; axis outside [0, rank) or different on another
// replica; shapes; dtypes).
Tensor all_gather(SyncGroup& group, int local_replica, const Tensor& value, int64_t axis);

// The same, for a caller that acts for all replicas of its task; on the CPU if there are other
// tasks, which must agree on `what`.
Tensor concat_replicas(SyncGroup& group, at::ArrayRef<Tensor> local_values, int64_t axis,
                       std::string_view what = "gather");

// Throw the errors above if the values cannot be added / concatenated. Errors number the replicas
// from `first_replica`.
void check_same_shape(at::ArrayRef<Tensor> values, int first_replica = 0);
void check_can_concat(at::ArrayRef<Tensor> values, int64_t axis);
// Throws where a value cannot be concatenated with any other, which it tells without the others.
// Errors: InvalidArgument (undefined), Unimplemented (sparse).
void check_can_gather(const Tensor& value);

}  // namespace cohort::collective
