// Collectives between the replicas of one process: they share memory, so each adds up one slice of
// everybody's values straight from where they lie.
#pragma once

#include "cohort/collective/thread_group.h"
#include "cohort/core/tensor.h"

namespace cohort::collective {

// The sum over all members, added up in the order of ranks: equal to the bit everywhere.
// Shapes: value [..], the same on every member -> a tensor of its own, of that shape, on value's
// device. Not differentiable. `what` names the call: members must agree on it.
// Collective. Errors: InvalidArgument (shapes or dtypes differ, naming both; a dtype that cannot be
// added), and ThreadGroup::meet's.
Tensor all_reduce_sum(ThreadGroup& group, int rank, const Tensor& value,
                      const char* what = "all_reduce");

// The members' values one after another along `axis`.
// Shapes: value [.., n_r, ..], alike but for `axis` -> [.., sum of n_r, ..].
// Collective. Errors: InvalidArgument (rank 0, axis outside [0, rank) or another on another member,
// shapes, dtypes).
Tensor all_gather(ThreadGroup& group, int rank, const Tensor& value, int64_t axis);

// Throws what is said above where two values cannot be added up / joined; `names` as "replica".
void check_same_shape(at::ArrayRef<Tensor> values);
void check_can_concat(at::ArrayRef<Tensor> values, int64_t axis);

}  // namespace cohort::collective
