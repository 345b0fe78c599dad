// The sums of a step's gradients over all replicas of several tasks.
//
// In the first step all gradients travel after the backward pass: the tasks agree on the list of
// variables, and on which gradients there are. From then on, gradients that are dense on some
// replica go in buckets, as soon as they are there (TaskBuckets); the others go after the backward
// pass (LateGradients). If a variable's gradients change their kind, it goes the other way from the
// next step on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/gradients/late_gradients.h"
#include "cohort/distribute/gradients/task_buckets.h"

namespace cohort::internal {

// Thread safety: arrived and add_up_rest by each replica on its own thread, the rest by one thread
// while the others wait.
class TaskSums {
 public:
  // bytes_per_pack: 0 means the default. `gradients` and `group` must outlive it.
  TaskSums(const std::vector<distribute::Variable>& variables, const ReplicaGradients& gradients,
           collective::SyncGroup& group, int64_t bytes_per_pack);

  // Begins a step whose gradients arrive one by one.
  void begin();
  // A replica has passed its gradient of a variable. Errors: as TaskBuckets::arrived.
  void arrived(size_t variable);
  // All gradients of the step have arrived, one by one or at once.
  // COLLECTIVE over the tasks in the first step.
  // Errors: InvalidArgument (tasks that update other variables, naming the first), those of a
  // Communicator's calls.
  void settle(Contributions local, Arrival arrival);
  // See TaskBuckets::add_up_rest; after settle.
  void add_up_rest();
  // Waits until all sums are there. Each task computes the update for itself. If the rule or rate
  // of `step` differs from that of the step before, the tasks compare them, so that a task that
  // alone has changed one makes a call that the others do not.
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  void finish(Contributions local, const UpdateStep& step);

  // These are known after finish(), until the next step.
  //
  // The sum of a variable's gradients, flat; undefined if there is none, or if it is of rows.
  std::span<const Tensor> dense() const { return dense_; }
  // The rows of those that are sparse on every replica, in parts to be added up in their order; of
  // others empty.
  std::span<const std::span<const SparseRows>> rows() const { return rows_; }
  // Merges each variable's rows into one part, whose values may be changed in place.
  void merge_rows();
  // The values of `rows`, after merge_rows. Of a variable that has them.
  MergedRows& values_of_rows(size_t variable) { return *merged_[variable]; }

 private:
  void agree_on_variables();
  void agree_on_update(const UpdateStep& step);
  void keep_packed(size_t variable, bool packed);
  void divide();
  std::unique_ptr<TaskBuckets> make_buckets() const;

  const std::vector<distribute::Variable> variables_;
  const ReplicaGradients& gradients_;
  collective::SyncGroup& group_;
  const int64_t bytes_per_pack_;
  std::string signature_;  // stands for the list of variables; empty until they are agreed on
  std::optional<double> agreed_rate_;  // nothing: the tasks have not compared their rules yet
  std::vector<bool> packed_;           // by variable, from the next step on
  bool divided_ = false;               // whether buckets_ and late_ are as packed_ says
  std::unique_ptr<TaskBuckets> buckets_;
  LateGradients late_;

  std::vector<Tensor> dense_;
  std::vector<std::span<const SparseRows>> rows_;
  std::vector<MergedRows*> merged_;
};

}  // namespace cohort::internal
