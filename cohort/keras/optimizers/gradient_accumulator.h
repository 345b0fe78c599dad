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

#include "cohort/core/task.h"
#include "cohort/distribute/gradient_exchange.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/keras/optimizers/optimizer.h"
#include "cohort/train/trackable.h"

namespace cohort::internal {

// Each replica adds up for itself, so that calls without an update exchange nothing. A checkpoint
// holds the sums and the number of calls.
// Thread safety: make while no replica is in another call; the rest from all replicas at once.
class GradientAccumulator final : public train::Trackable {
 public:
  GradientAccumulator(std::string optimizer_name, int64_t steps);

  // Makes the sums of targets that are new.
  void make(const std::vector<UpdateTarget>& targets);

  // Adds the calling replica's gradients and returns false; or returns true and adds nothing where
  // this call is the one that updates.
  // Errors: InvalidArgument (no gradient at all, as Optimizer; a gradient's shape; other variables than
  // those of the replica's first call since the last update, whose sums would wait for a later one).
  bool update_is_due(const distribute::ReplicaContext& replica,
                     const keras::optimizers::GradientsAndVariables& gradients);
  // Of the calls since the last update, this one included.
  std::vector<Tensor> means(const keras::optimizers::GradientsAndVariables& gradients) const;
  // Begins anew, after the update.
  void clear(const keras::optimizers::GradientsAndVariables& gradients);

  std::vector<train::TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return true; }

 private:
  // Of a replica, with its task.
  using Caller = std::pair<const Task*, int>;

  void check_list(const distribute::ReplicaContext& replica, bool is_first,
                  const keras::optimizers::GradientsAndVariables& gradients);
  const Variable& sum_of(const Variable& variable) const;
  Variable make_variable(const std::string& name, std::vector<int64_t> shape, DType dtype) const;

  const std::string optimizer_name_;
  const int64_t steps_;
  Variable calls_;  // since the last update
  std::unordered_map<const VariableImpl*, Variable> sums_;
  std::mutex mutex_;
  // The variables of each replica's calls since the last update; guarded by mutex_.
  std::map<Caller, std::vector<Variable>> lists_;
  train::TrackableList list_;  // of the sums, in the order in which they were made
};

}  // namespace cohort::internal
