// The gradient exchange of strategies whose replicas run in step: every replica ends with the same
// values.
#pragma once

#include "cohort/collective/group_view.h"
#include "cohort/distribute/gradient_contribution.h"
#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/gradient_packs.h"

namespace cohort::internal {

struct GradientSources;

// If all replicas are in one task, an update is one pass over memory. Each replica's thread takes
// one slice of all elements, adds the gradients in replica order (so every run gives the same
// bits), applies the rule to the slice, and copies the result to further components. Sparse
// gradients stay sparse if all replicas' are, and give bitwise the result of dense ones; a rule
// that does not change elements with a zero gradient then touches only those rows.
//
// If the replicas are in several tasks, or the step uses the sums in another way, there are three
// passes: sum over the task's replicas, sum over tasks, update.
class MirroredExchange final : public GradientExchange {
 public:
  // group: the current task's. Errors: FailedPrecondition (targets of another task; begin()'s too).
  MirroredExchange(std::vector<UpdateTarget> targets, collective::SyncGroup& group);

  void begin(distribute::ReplicaContext& replica, Arrival arrival) override;
  void bring(distribute::ReplicaContext& replica, size_t target, const Tensor& gradient) override;
  bool has(const distribute::ReplicaContext& replica, size_t target) const override;
  UpdateResult finish(distribute::ReplicaContext& replica, const UpdateStep& step) override;

 private:
  // Sums that are sent to other tasks, or that the step processes before the update.
  struct Sums {
    std::vector<Tensor> tensors;   // one a target, in memory that the communicator need not copy
    std::vector<Tensor> used;      // of those, the ones that some replica has a gradient of
    std::vector<int32_t> present;  // how many replicas have one
    double scale = 1;
    UpdateResult result;
  };

  bool overlaps() const override { return local_replicas_ > 1; }
  void update_in_one_pass(distribute::ReplicaContext& replica, Contribution& mine,
                          const UpdateStep& step, const optim::StepScalars& scalars);
  UpdateResult update_from_sums(distribute::ReplicaContext& replica, Contribution& mine,
                                const UpdateStep& step, const optim::StepScalars& scalars);
  // Called by one thread, while the others wait.
  void prepare_sums(collective::SyncGroup& group, Contributions all);
  void sum_over_tasks(collective::SyncGroup& group);
  void transform_sums(const UpdateStep& step);
  void update_slices(const distribute::ReplicaContext& replica, const GradientSources& sources,
                     const UpdateStep& step, const optim::StepScalars& scalars, int64_t elements);
  const GradientPacks* packs_of(const distribute::ReplicaContext& replica) const;

  const size_t local_replicas_;
  GradientPacks packs_;
  std::vector<Arrival> arrival_;  // of each local replica's current step
  Sums sums_;
};

}  // namespace cohort::internal
