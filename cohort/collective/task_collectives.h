// Collectives of tensors between the tasks of a group, for a caller that acts for all replicas of
// its task: in cross-replica context, or as the leader of a barrier.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cohort/collective/sum_tree.h"
#include "cohort/collective/sync_group.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// All are COLLECTIVE over the tasks. Errors: those of a Communicator's calls. Those that give all
// tasks the same are repeatable (SyncGroup::repeatable).

// All tasks meet, and show that they make the same call.
void agree_between_tasks(SyncGroup& group, std::string_view name, std::string_view signature);

// In place: the sum of all tasks' tensors, in the order of ranks.
// Shapes: contiguous, on the CPU, the same on every task.
void sum_over_tasks(SyncGroup& group, const Tensor& value, std::string_view name);

// The sum over all replicas in the order of the group's tree (GroupView::division, which it must
// have); this task passes the values of its own replicas, in order.
// Shapes: the same for all replicas -> the same, contiguous, on the CPU.
Tensor sum_by_tree(SyncGroup& group, at::ArrayRef<Tensor> local_values, std::string_view name);

// The same where the values of all replicas are here, in the order of ids; not COLLECTIVE.
Tensor sum_of_all_replicas(at::ArrayRef<Tensor> values);

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

// The same one after another, where all bring equally many.
std::string all_tasks_bytes(SyncGroup& group, std::string_view mine, std::string_view name);

// The values of all tasks, in the order of ranks; `mine` is this task's. The bytes of T must mean
// the same on every machine of the group.
template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> all_tasks_values(SyncGroup& group,
                                                                         const T& mine,
                                                                         std::string_view name) {
  if (!group.spans_tasks()) return {mine};
  const std::string all =
      all_tasks_bytes(group, {reinterpret_cast<const char*>(&mine), sizeof mine}, name);
  std::vector<T> values(all.size() / sizeof(T), mine);
  std::memcpy(static_cast<void*>(values.data()), all.data(), all.size());
  return values;
}

}  // namespace cohort::collective
