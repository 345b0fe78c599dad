#include "cohort/keras/layers/base/placement.h"

#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::internal {

bool is_in_step() { return distribute::has_strategy() && !distribute::in_cross_replica_context(); }

c10::Device first_device(const StrategyCore& core) {
  return core.steps_run_elsewhere() ? c10::Device(c10::kCPU)
                                    : torch_device(core.worker_devices()[0]);
}

c10::Device computing_device() {
  if (!has_gpus() || !distribute::has_strategy()) return c10::kCPU;
  return is_in_step() ? device_of_new_tensors() : first_device(*distribute::get_strategy().core());
}

Structure copied_to_device(const Structure& inputs, c10::Device device) {
  if (device.is_cpu()) return inputs;
  return inputs.map([&](const Leaf& leaf) {
    const bool is_there = leaf.is_strings() || !leaf.tensor().is_cpu();
    return is_there ? leaf : Leaf(leaf.tensor().to(device));
  });
}

}  // namespace cohort::internal
