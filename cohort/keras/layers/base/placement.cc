#include "cohort/keras/layers/base/placement.h"

#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

c10::Device computing_device() {
  if (!has_gpus() || !distribute::has_strategy()) return c10::kCPU;
  if (!distribute::in_cross_replica_context()) return device_of_new_tensors();
  const StrategyCore& core = *distribute::get_strategy().core();
  return core.steps_run_elsewhere() ? c10::Device(c10::kCPU)
                                    : torch_device(core.worker_devices()[0]);
}

Structure beside_weights(const Structure& inputs,
                         const std::vector<distribute::Variable>& weights) {
  if (!has_gpus() || (distribute::has_strategy() && !distribute::in_cross_replica_context())) {
    return inputs;
  }
  const bool are_elsewhere = !weights.empty() && !weights[0].impl().is_local();
  if (are_elsewhere) return inputs;
  const c10::Device device = weights.empty()
                                 ? computing_device()
                                 : weights[0].impl().local().component(0).device();
  if (device.is_cpu()) return inputs;
  return inputs.map([&](const Leaf& leaf) {
    const bool is_here = leaf.is_strings() || !leaf.tensor().is_cpu();
    return is_here ? leaf : Leaf(leaf.tensor().to(device));
  });
}

}  // namespace cohort::internal
