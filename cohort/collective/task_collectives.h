// Collectives of tensors between the tasks of a group, for a caller that stands for all replicas of
// its task: across replicas, or as the leader of a meeting.
#pragma once

#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/tensor.h"

namespace cohort::collective {

// All are COLLECTIVE over the tasks. Errors: those of a Communicator's calls.

// In place: the sum of all tasks' tensors, in the order of ranks.
// Shapes: contiguous, on the CPU, the same on every task.
void sum_over_tasks(SyncGroup& group, const Tensor& value, std::string_view name);

// In place: the tensor of task 0. Shapes: contiguous, on the CPU, the same on every task.
void take_from_first_task(SyncGroup& group, const Tensor& value, std::string_view name);

// The values of all replicas, in the order of their ids; this task brings its own, in order.
// Shapes: any, on the CPU -> those, on every task.
std::vector<Tensor> all_replicas_values(SyncGroup& group, at::ArrayRef<Tensor> local_values,
                                        std::string_view name);

// Numbers that each task brings one of, in the order of ranks.
std::vector<int64_t> all_tasks_numbers(SyncGroup& group, int64_t mine, std::string_view name);

}  // namespace cohort::collective
