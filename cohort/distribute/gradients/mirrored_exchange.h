// The gradient exchange of strategies whose replicas run in step: every replica ends with the same
// values.
#pragma once

#include <memory>
#include <vector>

#include "cohort/collective/group_view.h"
#include "cohort/collective/sum_division.h"
#include "cohort/core/function_ref.h"
#include "cohort/distribute/gradients/gradient_contribution.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/gradients/kept_targets.h"
#include "cohort/distribute/gradients/replica_gradients.h"
#include "cohort/distribute/gradients/slice_walk.h"
#include "cohort/distribute/gradients/task_sums.h"

namespace cohort::internal {

struct GradientSources;

// If all replicas are in one task, an update is one pass over memory. Each replica's thread takes
// one slice of all elements, adds the gradients in replica order (so every run gives the same
// bits), applies the rule to the slice, and copies the result to further components. Sparse
// gradients stay sparse if all replicas' are, and give bitwise the result of dense ones; a rule
// that does not change elements with a zero gradient then touches only those rows.
//
// If the step uses the sums in another way, there are two passes: sum, update. A rule that updates
// whole variables takes them one by one, each on the thread of one replica. If the replicas are
// in several tasks, gradients travel between them while the backward pass still runs (TaskSums),
// and nothing is updated before all sums are there: a step that fails changes no variable. Each
// task then updates all elements: with parts of the slots in other tasks, every reader of a slot
// (checkpoints, Optimizer::variables) would be a collective call.
class MirroredExchange final : public GradientExchange {
 public:
  // group: the current task's. bytes_per_pack: between tasks; 0 means the default.
  // Errors: FailedPrecondition (targets of another task; begin()'s too).
  MirroredExchange(std::vector<UpdateTarget> targets,
                   const std::shared_ptr<collective::SyncGroup>& group, int64_t bytes_per_pack = 0);

  void begin(Replica& replica, Arrival arrival) override;
  void bring(Replica& replica, size_t target, const Tensor& gradient) override;
  bool has(const Replica& replica, size_t target) const override;
  UpdateResult finish(Replica& replica, const UpdateStep& step) override;

 private:
  // Sums that the step processes before the update.
  struct Sums {
    std::vector<Tensor> dense;                      // one a target; undefined where there is none
    std::vector<std::span<const SparseRows>> rows;  // of those between tasks that are sparse
    std::vector<Tensor> memory;                     // one a target; of sums within this task
    std::vector<double> squares;                    // one a target, added up; where asked for
    double scale = 1;
    Tensor scale_on_device;  // in its place, where it is defined
    UpdateResult result;
  };

  bool overlaps() const override { return between_ != nullptr; }
  bool crosses_tasks(const UpdateStep& step) const {
    return between_ != nullptr && step.aggregate_gradients;
  }
  void update_in_one_pass(Replica& replica, Contribution& mine, const UpdateStep& step,
                          const optim::StepScalars& scalars);
  UpdateResult update_from_sums(Replica& replica, Contribution& mine, const UpdateStep& step,
                                const optim::StepScalars& scalars);
  WorkPart part_of(const Replica& replica) const {
    return {replica.local_replica_id(), static_cast<int>(local_replicas_)};
  }
  // `update` is called once the sums are there, by one thread while the others wait.
  void sum_over_tasks(Replica& replica, Contribution& mine, const UpdateStep& step,
                      FunctionRef<void(Contributions)> update);
  void sum_within_task(Replica& replica, Contribution& mine, const UpdateStep& step,
                       FunctionRef<void(Contributions)> update);
  // Called by one thread, while the others wait.
  void prepare_sums(Contributions all);
  void add_up_on_devices(Contributions all);
  void transform_sums(const UpdateStep& step);
  void clip_sums(const UpdateStep& step);
  bool sums_are_on_devices() const;
  template <class Visit>
  void visit_sum(size_t i, const Visit& visit);
  void scale_sum(size_t i, double factor);
  void square_sums();
  GradientSources sources_of(Contributions replicas) const;
  void update_slices(const WorkPart& part, const GradientSources& sources, const UpdateStep& step,
                     const optim::StepScalars& scalars, int64_t elements);
  // Whether one replica does the work of all, because they run one at a time: nothing is gained
  // where each does its part in its turn, and a turn costs a change of threads. For the same reason
  // they do not meet before the backward pass; what they would compare there, they compare after
  // it, and no bucket leaves before the last of them has come.
  bool works_for_all(Replica& replica) const {
    return replica.group().threads().takes_turns() && !any_on_device_;
  }
  // After all threads have updated their slices: what the variables' constraints ask for, of those
  // that have a gradient. `sources` are made of the contributions.
  void constrain(Replica& replica, Contribution& mine,
                 FunctionRef<GradientSources(Contributions)> sources);
  // Makes sums on the host dense and scaled, for rules that update whole variables.
  void make_sums_whole();
  // Called by one thread before an update, from sums or in one pass.
  void prepare_to_keep(const Replica& replica, const UpdateStep& step, bool from_sums);
  void update_whole_variables(const WorkPart& part, const UpdateStep& step,
                              const optim::StepScalars& scalars);

  bool is_on_host(size_t i) const;

  const std::shared_ptr<collective::SyncGroup> group_;  // outlives what refers to it
  const size_t local_replicas_;
  bool any_on_host_ = false;
  bool any_on_device_ = false;
  bool any_constraint_ = false;
  AddedUp added_up_ = AddedUp::kInTask;
  ReplicaGradients gradients_;
  std::vector<Arrival> arrival_;  // of each local replica's current step
  // The rows of each local replica's sparse gradients, one a target.
  std::vector<std::vector<SparseRows>> rows_;
  // Null: sums are in the order of replicas.
  const std::shared_ptr<const collective::SumDivision> division_;
  Sums sums_;
  KeptTargets kept_;
  std::unique_ptr<TaskSums> between_;  // nullptr: all replicas are in this task
};

}  // namespace cohort::internal
