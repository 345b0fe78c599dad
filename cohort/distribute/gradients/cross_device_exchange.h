// The gradient exchange of a strategy whose program chose its cross-device operations.
#pragma once

#include <memory>
#include <vector>

#include "cohort/collective/group_view.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/reduce/cross_device_ops.h"

namespace cohort::internal {

// Reduces the gradients of all replicas with the object that the program gave, and hands the sums
// to the exchange that updates. One thread reduces, while the others wait.
class CrossDeviceExchange final : public GradientExchange {
 public:
  // `update`: of the same targets. `ops` outlives the exchange.
  CrossDeviceExchange(std::unique_ptr<GradientExchange> update,
                      const distribute::CrossDeviceOps& ops, size_t local_replicas);

  void begin(Replica& replica, Arrival arrival) override;
  void bring(Replica& replica, size_t target, const Tensor& gradient) override;
  bool has(const Replica& replica, size_t target) const override;
  UpdateResult finish(Replica& replica, const UpdateStep& step) override;

 private:
  bool overlaps() const override { return false; }
  // Called by one thread, while the others wait.
  void reduce();

  const std::unique_ptr<GradientExchange> update_;
  const distribute::CrossDeviceOps& ops_;
  std::vector<std::vector<Tensor>> gradients_;         // by local replica, then target
  std::vector<distribute::Mirrored<Tensor>> reduced_;  // by target; empty where none has a gradient
};

}  // namespace cohort::internal
