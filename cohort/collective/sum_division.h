// How the replicas of a group are divided among its tasks, and how their values are added up so
// that the division changes no bit of a sum (SumTree).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cohort/collective/sum_tree.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// Immutable.
class SumDivision {
 public:
  // replicas_of: the number of replicas of each task, in the order of ranks. rank: of this task.
  SumDivision(const std::vector<int>& replicas_of, int rank);

  // The nodes whose sums a task brings, and this one.
  std::span<const ReplicaRange> parts(int rank) const {
    return parts_of_[static_cast<size_t>(rank)];
  }
  std::span<const ReplicaRange> own_parts() const { return parts_of_[rank_]; }
  // The replicas of one of them, counted from the task's first.
  ReplicaRange own_replicas(size_t own_part) const {
    const int first = own_parts()[0].first;
    return {own_parts()[own_part].first - first, own_parts()[own_part].last - first};
  }
  size_t num_parts(int rank) const { return parts(rank).size(); }
  size_t most_parts() const { return most_parts_; }  // of any task
  size_t num_tasks() const { return parts_of_.size(); }
  int num_replicas(int rank) const { return parts(rank).back().last - parts(rank).front().first; }
  const SumTree& tree() const { return tree_; }
  // How values of all tasks' parts, in the order of ranks, are added up.
  const Additions& additions() const { return additions_; }
  // How values of the replicas of one of this task's parts are added up.
  const Additions& additions_within(size_t own_part) const { return within_[own_part]; }

  // Adds up `local`, a value of each of this task's replicas, `count` elements each; null where a
  // replica has none. Writes a sum for each of own_parts(), one after another, of
  // sum_dtype(dtype); parts without any value become negative zeros, which change nothing that is
  // added to them. Communicator::all_reduce_parts adds them to those of the other tasks.
  // Errors: InvalidArgument (a dtype that cannot be added).
  void add_up_local(std::span<const void* const> local, void* parts, int64_t count,
                    DType dtype) const;

 private:
  const size_t rank_;
  const SumTree tree_;
  std::vector<std::vector<ReplicaRange>> parts_of_;  // by rank
  size_t most_parts_ = 0;
  Additions additions_;
  std::vector<Additions> within_;
};

}  // namespace cohort::collective
