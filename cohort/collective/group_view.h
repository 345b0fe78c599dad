// The tasks and replicas that take part in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cohort::collective {

class SumDivision;

// Taken once per step. Sizes, ids, input pipelines, plans and buffers are derived from it, and
// nothing keeps them beyond the step, since a group may form again between two steps.
struct GroupView {
  // Increases each time the group forms again.
  int64_t generation = 0;
  int task = 0;                        // the rank of this task
  std::vector<int> replicas_of = {1};  // the number of replicas of each task
  // How values are added up where a sum must not depend on which task has which replica. Null: the
  // replicas of a task in their order, then the tasks in the order of ranks.
  std::shared_ptr<const SumDivision> division = nullptr;

  int num_tasks() const { return static_cast<int>(replicas_of.size()); }
  int num_local_replicas() const { return replicas_of[static_cast<size_t>(task)]; }
  // Replica ids are numbered task by task, in the order of ranks.
  int first_replica() const { return replicas_before(task); }
  int num_replicas() const { return replicas_before(num_tasks()); }
  int replicas_before(int rank) const {
    int count = 0;
    for (int i = 0; i < rank; ++i) count += replicas_of[static_cast<size_t>(i)];
    return count;
  }
};

}  // namespace cohort::collective
