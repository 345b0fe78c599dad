// Sums of the gradients of several calls, for optimizers that update less often than they are
// called.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/keras/optimizers/optimizer_options.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// Each replica adds up for itself, so that calls without an update exchange nothing. The sums and
// the number of calls are variables, and so in checkpoints; where workers run steps by themselves,
// each at its own pace, they are in the worker's memory, and go with it.
// Thread safety: make while no replica is in another call; the rest from all replicas at once.
class GradientAccumulator final : public train::Trackable {
 public:
  GradientAccumulator(std::string optimizer_name, int64_t steps);

  // Makes the sums of targets that are new.
  void make(const std::vector<UpdateTarget>& targets);

  // Adds the calling replica's gradients and returns false; or returns true and adds nothing where
  // this call is the one that updates.
  // Errors: InvalidArgument (no gradient at all, as Optimizer; a gradient's shape or dtype; other
  // variables than those of the replica's first call since the last update, whose sums would wait
  // for a later one); the call has then added nothing.
  bool update_is_due(const distribute::ReplicaContext& replica,
                     const keras::optimizers::GradientsAndVariables& gradients);
  // The means over the replica's calls since the last update, this one included.
  std::vector<Tensor> means(const distribute::ReplicaContext& replica,
                            const keras::optimizers::GradientsAndVariables& gradients);
  // Begins anew, after the update.
  void clear(const distribute::ReplicaContext& replica,
             const keras::optimizers::GradientsAndVariables& gradients);

  std::vector<train::TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return !is_in_memory_; }

 private:
  // A replica, with its task.
  using Caller = std::pair<const Task*, int>;

  // What a replica has of its calls since the last update.
  struct Own {
    std::vector<Variable> list;
    // Used where the sums are in memory.
    int64_t calls = 0;
    std::unordered_map<const VariableImpl*, Tensor> sums;
  };

  Own& own_of(const distribute::ReplicaContext& replica);
  void check_list(Own& own, bool is_first,
                  const keras::optimizers::GradientsAndVariables& gradients) const;
  int64_t calls(const Own& own) const;
  void add(Own& own, const Variable& variable, const Tensor& gradient) const;
  // Undefined: of no gradient.
  Tensor sum_of(const Own& own, const Variable& variable) const;
  Variable make_variable(const std::string& name, std::vector<int64_t> shape, DType dtype) const;

  const std::string optimizer_name_;
  const int64_t steps_;
  bool is_in_memory_ = false;
  Variable calls_;  // since the last update
  std::unordered_map<const VariableImpl*, Variable> sums_;
  std::mutex mutex_;
  std::map<Caller, Own> owns_;  // guarded by mutex_; each is its replica's
  train::TrackableList list_;   // of the sums, in the order in which they were made
};

}  // namespace cohort::internal
