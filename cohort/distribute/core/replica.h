// One replica of a running step, as the library's own code sees it. Step functions see it as a
// ReplicaContext (strategies/replica_context.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"

namespace cohort {

namespace collective {
struct GroupView;
class SyncGroup;
}  // namespace collective
namespace random {
class RandomGenerator;
}

namespace internal {

class StepOutput;
class StrategyCore;

// Lives as long as the step; used only by the step's own thread. Every replica must make the same
// collective calls in the same order.
class COHORT_API Replica {
 public:
  // 0 .. num_replicas_in_sync - 1.
  int replica_id_in_sync_group() const { return replica_id_; }
  int num_replicas_in_sync() const;
  // The index of this replica within its task.
  int local_replica_id() const { return local_id_; }
  // The canonical name of this replica's device; always one element.
  std::vector<std::string> devices() const;

  // Meets the other replicas under the name `what`. The last to arrive calls leader, in
  // cross-replica context, with what each replica passed as `mine`.
  // COLLECTIVE. Errors: what leader throws, on every replica; FailedPrecondition (another replica
  // makes another call: names both), DeadlineExceeded (names the replica that has not come).
  void merge(const char* what, void* mine, FunctionRef<void(std::span<void* const>)> leader);
  // Errors: FailedPrecondition (the calling thread is not in this replica).
  void check_own_context(const char* what) const;

  StrategyCore& core() const { return core_; }
  // The replicas that it meets. There is always a group: a single replica has a group of one.
  collective::SyncGroup& group() const;
  const collective::GroupView& view() const { return *view_; }
  StepOutput* output() const { return output_; }
  // The number of the step, from 1, among those that this task has run under the strategy; 0: steps
  // are not counted.
  int64_t step() const;
  // Begins another step within the same run. For a single replica.
  void next_step() const;

 protected:
  // view: who takes part in the step. merge_generator: the generator from which merged functions
  // draw; nullptr: the calling thread's. output: where its lines wait; nullptr: they do not.
  Replica(StrategyCore& core, int local_id, std::shared_ptr<const collective::GroupView> view,
          const random::RandomGenerator* merge_generator, StepOutput* output);

 private:
  StrategyCore& core_;
  int local_id_;
  int replica_id_;
  std::shared_ptr<const collective::GroupView> view_;
  const random::RandomGenerator* merge_generator_;
  StepOutput* output_;
};

// Ensures that the caller is not in a replica of a strategy other than the default one.
// Errors: FailedPrecondition (it is; the text says to use `use`).
void require_cross_replica(const char* method, const char* use);

}  // namespace internal
}  // namespace cohort
