// Sums over tasks the gradients for which no pack has room, after the backward pass: those that are
// sparse on every replica, of which only the rows travel, and those of variables that had none when
// they were last seen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/distribute/gradient_contribution.h"
#include "cohort/distribute/gradient_packs.h"
#include "cohort/distribute/task_packs.h"

namespace cohort::internal {

// Called by one thread per task, while the task's replicas wait.
class LateGradients {
 public:
  // What has become of one of them.
  struct Sum {
    size_t variable = 0;
    GradientCount count;                   // over all replicas
    Tensor dense;                          // flat; undefined if the sum is of rows
    MergedRows rows;                       // over all tasks
    SparseRows in_order;                   // of `rows`
    collective::BufferPool::Piece memory;  // of `dense`

    bool is_rows() const { return count.present > 0 && count.sparse == count.present; }
  };

  LateGradients(const std::vector<distribute::Variable>& all, const GradientPacks& gradients,
                collective::SyncGroup& group)
      : all_(all), gradients_(gradients), group_(group) {}

  // Says which variables they are; the same on every task. `signature` stands for their list.
  void use(const std::vector<size_t>& variables, std::string signature);
  size_t size() const { return sums_.size(); }
  std::span<Sum> sums() { return sums_; }

  // Tells all tasks which of the gradients there are; then the counts of sums() are known.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  void agree(Contributions local);
  // Sums the rows, and of those that some replica has dense the ones that `packs` does not contain.
  // After agree(), in the same step.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  void exchange(const TaskPacks& packs);

 private:
  // What a task says of one variable; 8-byte numbers alone.
  struct Status {
    int64_t present = 0;
    int64_t sparse = 0;
    int64_t rows = 0;  // after rows of the same id were added up
  };

  const distribute::Variable& variable_of(const Sum& sum) const { return all_[sum.variable]; }
  int64_t row_size(const Sum& sum) const;
  int64_t row_bytes(const Sum& sum) const;
  const Status& status(int task, size_t position) const {
    return statuses_[static_cast<size_t>(task) * sums_.size() + position];
  }
  Status local_status(Sum& sum, Contributions local);
  int64_t bytes_of_rows(int task) const;
  void exchange_rows();
  void write_rows(char* out) const;
  void merge_rows(const char* all_tasks);
  void exchange_dense(Sum& sum);

  const std::vector<distribute::Variable>& all_;
  const GradientPacks& gradients_;
  collective::SyncGroup& group_;
  std::string signature_;
  std::vector<Sum> sums_;
  std::vector<MergedRows> own_rows_;  // of this task, by position in sums_
  std::vector<Status> statuses_;      // [task][position]
  std::vector<int64_t> parts_;        // of each task, in the call that is being made
  collective::BufferPool::Piece rows_memory_;
};

}  // namespace cohort::internal
