// How the replicas of a group are divided among its tasks, and how their values are added up so
// that the division changes no bit of a sum (SumTree).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/collective/communicator.h"
#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/sum_tree.h"

namespace cohort::collective {

// Immutable.
class SumDivision {
 public:
  // replicas_of: the number of replicas of each task, in the order of ranks. rank: of this task.
  SumDivision(const std::vector<int>& replicas_of, int rank);

  // The nodes whose sums this task brings, and all tasks together.
  std::span<const ReplicaRange> own_parts() const { return parts_of_[rank_]; }
  // The replicas of one of them, counted from the task's first.
  ReplicaRange own_replicas(size_t own_part) const {
    const int first = own_parts()[0].first;
    return {own_parts()[own_part].first - first, own_parts()[own_part].last - first};
  }
  size_t num_parts(int rank) const { return parts_of_[static_cast<size_t>(rank)].size(); }
  size_t num_tasks() const { return parts_of_.size(); }
  // How values of all tasks' parts, in the order of ranks, are added up.
  const Additions& additions() const { return additions_; }
  // How values of the replicas of one of this task's parts are added up.
  const Additions& additions_within(size_t own_part) const { return within_[own_part]; }

  // Adds up `local`, a value of each of this task's replicas, `count` elements each; null where a
  // replica has none. Writes a sum for each of own_parts(), one after another; parts without any
  // value become negative zeros, which change nothing that is added to them.
  // Errors: InvalidArgument (a dtype that cannot be added).
  void add_up_local(std::span<const void* const> local, void* parts, int64_t count,
                    DType dtype) const;
  // Adds up the parts of all tasks and writes the sum to `out`. `parts`: what add_up_local has
  // written, in memory that must not change before this task's next gather_bytes has returned.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls; DataLoss (a task has sent
  // another number of bytes).
  void add_up_tasks(Communicator& communicator, const void* parts, void* out, int64_t count,
                    DType dtype, GatheredBytes& gathered, const CallOptions& options) const;
  // The same where the parts of all tasks lie one after another, in the order of ranks.
  void add_up_gathered(const void* all_parts, void* out, int64_t count, DType dtype) const;

 private:
  const size_t rank_;
  std::vector<std::vector<ReplicaRange>> parts_of_;  // by rank
  Additions additions_;
  std::vector<Additions> within_;
};

}  // namespace cohort::collective
