// Collectives between replicas. Those of one task share memory: each adds up one slice of everybody's
// values straight from where they lie; then the tasks put theirs together.
#pragma once

#include "cohort/collective/sync_group.h"
#include "cohort/core/tensor.h"

namespace cohort::collective {

// The sum over all replicas, added up in their order within a task and then in the order of tasks:
// equal to the bit everywhere.
// Shapes: value [..], the same on every replica -> a tensor of its own, of that shape, on value's
// device. Not differentiable. `what` names the call: replicas must agree on it.
// Collective. Errors: InvalidArgument (shapes or dtypes differ, naming both; a dtype that cannot be
// added), those of ThreadGroup::meet and of a Communicator's calls.
Tensor all_reduce_sum(SyncGroup& group, int local_replica, const Tensor& value,
                      const char* what = "all_reduce");

// The replicas' values one after another along `axis`, in the order of their ids.
// Shapes: value [.., n_r, ..], alike but for `axis` -> [.., sum of n_r, ..].
// Collective. Errors: InvalidArgument (rank 0, axis outside [0, rank) or another on another member,
// shapes, dtypes).
Tensor all_gather(SyncGroup& group, int local_replica, const Tensor& value, int64_t axis);

// The same for a caller that stands for all replicas of its task; on the CPU where there are others.
Tensor concat_replicas(SyncGroup& group, at::ArrayRef<Tensor> local_values, int64_t axis);

// Throws what is said above where two values cannot be added up / joined; whose id `first_replica` is the first.
void check_same_shape(at::ArrayRef<Tensor> values, int first_replica = 0);
void check_can_concat(at::ArrayRef<Tensor> values, int64_t axis);

}  // namespace cohort::collective
