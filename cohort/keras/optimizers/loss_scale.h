// A loss scale that follows the gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cohort/distribute/core/build_once.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::distribute {
class ReplicaContext;
}

namespace cohort::internal {

class StrategyCore;

// Each replica counts for itself, as with an optimizer's iterations: they count alike.
// Thread safety: as Optimizer.
class LossScale final : public train::Trackable {
 public:
  // Errors (of value and the rest, too): InvalidArgument (a strategy with parameter servers).
  LossScale(double initial_scale, int64_t growth_steps);

  double value();
  // In a replica: what follows from a step whose gradients were finite, or not.
  void update(const distribute::ReplicaContext& replica, bool finite);
  const Variable& counter();
  int64_t growth_steps() const { return growth_steps_; }

  std::vector<train::TrackableChild> checkpoint_children() override;

 private:
  void make();

  const double initial_scale_;
  const int64_t growth_steps_;
  const std::shared_ptr<StrategyCore> strategy_;  // of the scope it was made in, if any
  BuildOnce once_;
  Variable scale_;
  Variable counter_;
};

// Errors: InvalidArgument (the current strategy, if there is one, has parameter servers).
void check_scaled_strategy();

}  // namespace cohort::internal
