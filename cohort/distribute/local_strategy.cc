#include "cohort/distribute/local_strategy.h"

#include <ATen/ops/cat.h>

#include "cohort/core/monitoring.h"
#include "cohort/distribute/mirrored_variable.h"
#include "cohort/distribute/sync_on_read_variable.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

using distribute::VariableOptions;
using distribute::VariableSynchronization;

LocalStrategy::LocalStrategy(Config config)
    : config_(std::move(config)), replicas_(config_.devices) {
  set_gauge("distribution_strategy_replica_gauge", {config_.name}, replicas_.size());
}

std::vector<random::RandomGenerator> LocalStrategy::replica_generators() {
  return replicas_.generators();
}

void LocalStrategy::run(const std::shared_ptr<RunFrame>& frame,
                        const distribute::RunOptions& options) {
  replicas_.run(*this, frame, options);
}

std::vector<Tensor> LocalStrategy::make_components(const Tensor& initial_value, bool shared) const {
  std::vector<Tensor> components;
  for (const c10::Device& device : replicas_.torch_devices()) {
    Tensor component;
    for (const Tensor& made : components) {
      if (shared && made.device() == device) component = made;
    }
    if (!component.defined()) {
      component = initial_value
                      .to(device, initial_value.scalar_type(), /*non_blocking=*/false, /*copy=*/true)
                      .contiguous();
    }
    components.push_back(component);
  }
  return components;
}

std::shared_ptr<VariableImpl> LocalStrategy::create_variable(const Tensor& initial_value,
                                                             VariableOptions options) {
  switch (options.synchronization) {
    case VariableSynchronization::ON_READ:
      return std::make_shared<SyncOnReadVariable>(
          shared_from_this(), std::move(options),
          make_components(initial_value, /*shared=*/false));
    case VariableSynchronization::ON_WRITE:
      break;
    case VariableSynchronization::NONE:
      if (replicas_.size() == 1) break;
      [[fallthrough]];
    default:
      throw InvalidArgumentError(
          str("Invalid variable synchronization mode NONE for variable '", options.name, "' under ",
              config_.name, "; use ON_WRITE or ON_READ"));
  }
  return std::make_shared<MirroredVariable>(
      shared_from_this(), std::move(options),
      make_components(initial_value, config_.shared_storage));
}

Tensor LocalStrategy::sum_over_replicas(at::ArrayRef<Tensor> local_components) {
  Tensor sum = local_components[0].to(at::kCPU);
  for (const Tensor& component : local_components.slice(1)) sum = sum + component.to(at::kCPU);
  return sum;
}

Tensor LocalStrategy::gather_over_replicas(at::ArrayRef<Tensor> local_components, int64_t axis) {
  std::vector<Tensor> components;
  for (const Tensor& component : local_components) components.push_back(component.to(at::kCPU));
  return at::cat(components, axis);
}

}  // namespace cohort::internal
