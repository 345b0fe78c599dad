// Sums dense gradients over tasks while the backward pass still runs.
//
// Variables are grouped into buckets, the last ones first, in the order in which the backward pass
// reaches them. Each bucket is one piece of the communicator's own memory. The replica that passes
// the last gradient of a bucket adds up the gradients of the task's replicas into it, in replica
// order, and posts it to the communication thread, which sums it over tasks. Buckets are posted in
// one order, whatever the order of arrival, so every task makes the same calls. Behind its
// gradients a bucket holds two numbers for each variable: how many replicas have a gradient, and
// how many of those are sparse.
//
// If sums follow a tree over the replicas (SumDivision), a bucket has such a piece for each of
// the task's parts, one after another, and the sum takes the place of the first.
//
// Where the communicator works on devices, gradients of variables there are added up in buckets
// that are memory of the variable's first device. They travel in the order of its stream, so that
// the host waits for none; the two numbers, which the host must know, travel by a call of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/collective/call_plan.h"
#include "cohort/collective/sum_division.h"
#include "cohort/collective/sync_group.h"
#include "cohort/distribute/gradients/replica_gradients.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::internal {

// How many replicas have a gradient of a variable, and how many of these are sparse.
struct GradientCount {
  int64_t present = 0;
  int64_t sparse = 0;
};

// Writes the sum of the gradients of a variable that these local replicas have, dense or sparse, to
// `out`: in replica order, or by `additions`, which has an entry for each of them. Where there is
// none, negative zeros, which change nothing that is added to them.
GradientCount add_up_local(const ReplicaGradients& gradients, collective::ReplicaRange replicas,
                           const collective::Additions* additions, size_t variable, void* out,
                           int64_t size, DType dtype);

// Whether gradients of a variable are added up between tasks where it is, on a device.
bool is_added_up_on_device(const distribute::Variable& variable, collective::SyncGroup& group);

struct TaskBucketsOptions {
  int64_t bytes_per_pack;
  // Stands for the list of variables, which the tasks have agreed on.
  std::string signature;
};

// Thread safety: begin and wait by one thread while no other is in a call; the rest by each replica
// on its own thread.
class TaskBuckets {
 public:
  // variables: those to pack, as indices into `all`, in rising order. `gradients` and `group` must
  // outlive it.
  TaskBuckets(const std::vector<distribute::Variable>& all, const std::vector<size_t>& variables,
              const ReplicaGradients& gradients, collective::SyncGroup& group,
              const TaskBucketsOptions& options);
  // Waits until no posted bucket is at work.
  ~TaskBuckets();

  size_t num_packs() const { return buckets_.size(); }
  bool contains(size_t variable) const { return place_of_[variable].bucket != kNone; }

  // Forgets the previous step.
  void begin();
  // A replica has passed its gradient of a variable.
  // Errors: that of a bucket that was posted before, so that a backward pass ends soon.
  void arrived(size_t variable);
  // Adds up and posts the buckets that are not complete by now. Called at once on the threads of
  // all replicas. Gradients that have not arrived by then do not exist.
  void add_up_rest();
  // Waits until every bucket is summed over all tasks.
  // Errors: those of a Communicator's calls.
  void wait();

  // These are known after wait().
  GradientCount count(size_t variable) const;
  // The sum over all replicas, flat.
  const Tensor& sum(size_t variable) const { return place_of_[variable].sum; }

 private:
  static constexpr size_t kNone = ~size_t{0};
  struct Bucket;
  struct Place {
    size_t bucket = kNone;
    size_t position = 0;  // within the bucket
    int64_t offset = 0;   // elements from the bucket's beginning
    size_t counts = 0;    // where its numbers are in counts_; of device buckets
    Tensor sum;
  };

  void take_memory(const std::vector<distribute::Variable>& all, const TaskBucketsOptions& options);
  void add_up(Bucket& bucket);
  void add_up_on_host(Bucket& bucket);
  void add_up_part(Bucket& bucket, collective::ReplicaRange replicas,
                   const collective::Additions* additions, char* memory);
  void add_up_on_device(Bucket& bucket);
  void post_in_order(Bucket& bucket);
  void fail(std::exception_ptr error);
  void check_not_failed() const;

  const ReplicaGradients& gradients_;
  collective::SyncGroup& group_;
  const std::shared_ptr<const collective::SumDivision> division_;  // null: in replica order
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<Place> place_of_;  // by variable
  std::shared_ptr<collective::CallPlan> plan_;
  std::chrono::nanoseconds timeout_{0};
  const std::string signature_;
  // Two numbers for each variable whose gradient is on a device, after wait() those of all tasks.
  std::vector<int64_t> counts_;

  std::mutex mutex_;
  size_t next_to_post_ = 0;   // guarded by mutex_
  std::exception_ptr error_;  // written by the communication thread, before failed_
  std::atomic<bool> failed_{false};
};

}  // namespace cohort::internal
