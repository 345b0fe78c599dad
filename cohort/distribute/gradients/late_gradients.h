// Sums over tasks, after the backward pass, the gradients that have no place in a bucket: those
// that are sparse on every replica, of which only the rows travel, and those of variables that had
// no gradient when they were last seen.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/sum_division.h"
#include "cohort/collective/sync_group.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/gradients/replica_gradients.h"
#include "cohort/distribute/gradients/task_buckets.h"

namespace cohort::internal {

// Each task tells all others in one call which gradients it has, and the rows of the sparse ones.
// Where tasks share memory, the rows are read where their task has written them.
// Called by one thread per task, while the task's replicas wait.
class LateGradients {
 public:
  // The sum of one variable's gradients. A part is the replicas of a task, or those of one of its
  // nodes (SumDivision): their rows are added up where they are.
  struct Sum {
    size_t variable = 0;
    GradientCount count;                   // over all replicas
    Tensor dense;                          // flat; undefined if the sum is of rows
    std::vector<SparseRows> of_parts;      // the sum of each part's rows
    MergedRows merged;                     // of all parts, once merge() was called
    SparseRows in_order;                   // of `merged`
    collective::BufferPool::Piece memory;  // of `dense`

    bool is_rows() const { return count.present > 0 && count.sparse == count.present; }
  };

  LateGradients(const std::vector<distribute::Variable>& all, const ReplicaGradients& gradients,
                collective::SyncGroup& group);
  ~LateGradients();

  // Sets the variables, which are the same on every task. `signature` stands for their list.
  void use(const std::vector<size_t>& variables, std::string signature);
  size_t size() const { return sums_.size(); }
  std::span<Sum> sums() { return sums_; }

  // Tells all tasks which of the gradients there are; then the counts of sums() are known.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  void agree(Contributions local);
  // Adds up this task's rows and writes the message that it will send.
  void write(Contributions local);
  // Exchanges all counts; then the rows of gradients that are sparse on every replica, and the sums
  // of those that are dense on some replica and not in `buckets`. To be called after write(), in
  // the same step. The rows stay until the next step.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls; DataLoss (what a task has
  // sent is not as long as it says, or has rows that the variable has not).
  void exchange(const TaskBuckets& buckets);
  // Adds up the rows of all parts, for callers that change the sum.
  void merge(Sum& sum);

 private:
  // What a task tells about one variable, in 8-byte numbers alone.
  struct Status {
    int64_t present = 0;
    int64_t sparse = 0;
    int64_t rows = 0;  // after rows of the same id were added up

    bool has_rows() const { return present > 0 && sparse == present; }
  };

  const distribute::Variable& variable_of(const Sum& sum) const { return all_[sum.variable]; }
  int64_t num_rows(const Sum& sum) const;
  int64_t row_size(const Sum& sum) const;
  int64_t row_bytes(const Sum& sum) const;
  Status status_of(const Sum& sum, Contributions local) const;
  size_t num_own_parts() const { return num_parts_[static_cast<size_t>(group_.view()->task)]; }
  Contributions of_own_part(Contributions local, size_t part) const;
  void collect_rows(const Sum& sum, Contributions local, size_t part);
  int64_t most_bytes(Contributions local);
  // Writes what a part brings and returns how many bytes that is.
  int64_t write_part(char* message, Contributions local, size_t part);
  void count(std::span<const Status> of_part);
  void read_message(int task);
  // Reads one part of a message, which may be followed by others, and returns its length.
  size_t read_part(int task, std::span<const char> message, size_t part);
  void check_rows(int task, const Sum& sum, size_t part) const;
  void exchange_dense(Sum& sum);

  const std::vector<distribute::Variable>& all_;
  const ReplicaGradients& gradients_;
  collective::SyncGroup& group_;
  const std::shared_ptr<const collective::SumDivision> division_;  // null: a part is a task
  std::vector<size_t> num_parts_;                                  // of each task
  std::string signature_;
  std::vector<Sum> sums_;

  // Messages of this task: what it sends now, and what others may still read.
  collective::BufferPool::Piece written_[2];
  size_t turn_ = 0;
  std::span<const char> message_;
  collective::GatheredBytes gathered_;
  // Kept for their memory.
  SparseRowSum row_sum_;
  std::vector<char> scratch_;
};

}  // namespace cohort::internal
