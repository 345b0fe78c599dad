// Collectives of tensors between the tasks of a group, for a caller that acts for all replicas of
// its task: in cross-replica context, or as the leader of a barrier.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// All are COLLECTIVE over the tasks. Errors: those of a Communicator's calls.

// In place: the sum of all tasks' tensors, in the order of ranks.
// Shapes: contiguous, on the CPU, the same on every task.
void sum_over_tasks(SyncGroup& group, const Tensor& value, std::string_view name);

// The sum over all replicas in the order of the group's tree (GroupView::division, which it must
// have); this task passes the values of its own replicas, in order.
// Shapes: the same for all replicas -> the same, contiguous, on the CPU.
Tensor sum_by_tree(SyncGroup& group, at::ArrayRef<Tensor> local_values, std::string_view name);

// In place: replaced by the tensor of task 0. `kind`: what else must be the same on every task.
// Shapes: contiguous, on the CPU, the same on every task.
void take_from_first_task(SyncGroup& group, const Tensor& value, std::string_view name,
                          std::string_view kind = "");

// The values of all replicas, in the order of replica ids; this task passes those of its own
// replicas, in order.
// Shapes: any, on the CPU -> the same shapes, on every task.
std::vector<Tensor> all_replicas_values(SyncGroup& group, at::ArrayRef<Tensor> local_values,
                                        std::string_view name);

// The bytes of all tasks, in the order of ranks; `mine` is this task's, of any length.
std::vector<std::string> all_tasks_texts(SyncGroup& group, std::string_view mine,
                                         std::string_view name);

// The values of all tasks, in the order of ranks; `mine` is this task's. The bytes of T must mean
// the same on every machine of the group.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> all_tasks_values(SyncGroup& group,
                                                                         const T& mine,
                                                                         std::string_view name) {
  const GroupView& view = *group.view();
  std::vector<T> values(view.replicas_of.size(), mine);
  if (!group.spans_tasks()) return values;
  const std::vector<int64_t> bytes_each(values.size(), sizeof(T));
  all_gather(group.between(),
             {values.data(), static_cast<int64_t>(values.size() * sizeof(T)), uint8}, bytes_each,
             {.name = name, .timeout = group.timeout()});
  return values;
}

}  // namespace cohort::collective
