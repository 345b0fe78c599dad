#include "cohort/keras/layers/base/placement.h"

#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::internal {

namespace {

bool in_step() { return distribute::has_strategy() && !distribute::in_cross_replica_context(); }

c10::Device first_device(const StrategyCore& core) {
  return core.steps_run_elsewhere() ? c10::Device(c10::kCPU)
                                    : torch_device(core.worker_devices()[0]);
}

// The device where the layer's weights are, or will be; the host where they are on other tasks.
c10::Device device_of_weights(const keras::layers::Layer& layer) {
  // While it is not built, another thread may be making its weights.
  const auto weights = layer.built() ? layer.weights() : keras::List<distribute::Variable>();
  if (weights.empty()) return first_device(*strategy_of(layer));
  const auto& variable = weights[0].impl();
  return variable.is_local() ? variable.local().component(0).device() : c10::Device(c10::kCPU);
}

}  // namespace

c10::Device computing_device() {
  if (!has_gpus() || !distribute::has_strategy()) return c10::kCPU;
  return in_step() ? device_of_new_tensors() : first_device(*distribute::get_strategy().core());
}

Structure beside_weights(const Structure& inputs, const keras::layers::Layer& layer) {
  if (in_step()) return inputs;
  const c10::Device device = device_of_weights(layer);
  if (device.is_cpu()) return inputs;
  return inputs.map([&](const Leaf& leaf) {
    const bool is_here = leaf.is_strings() || !leaf.tensor().is_cpu();
    return is_here ? leaf : Leaf(leaf.tensor().to(device));
  });
}

}  // namespace cohort::internal
