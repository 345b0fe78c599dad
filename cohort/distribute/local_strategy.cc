#include "cohort/distribute/local_strategy.h"

#include <ATen/ops/cat.h>

#include "cohort/core/monitoring.h"
#include "cohort/distribute/make_local_variable.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

LocalStrategy::LocalStrategy(Config config)
    : config_(std::move(config)), replicas_(config_.devices) {
  set_gauge("distribution_strategy_replica_gauge", {config_.name}, replicas_.size());
}

std::vector<random::Generator> LocalStrategy::replica_generators() {
  return replicas_.generators();
}

void LocalStrategy::run(const std::shared_ptr<RunFrame>& frame,
                        const distribute::RunOptions& options) {
  replicas_.run(*this, frame, options);
}

std::shared_ptr<VariableImpl> LocalStrategy::create_variable(
    const distribute::VariableSpec& spec, const distribute::VariableInitializer& initializer) {
  return make_local_variable(
      shared_from_this(), spec, initializer,
      {.devices = replicas_.torch_devices(), .shared_storage = config_.shared_storage});
}

Tensor LocalStrategy::sum_over_replicas(at::ArrayRef<Tensor> local_components) {
  Tensor sum = local_components[0].to(at::kCPU);
  for (const Tensor& component : local_components.slice(1)) sum = sum + component.to(at::kCPU);
  return sum;
}

Tensor LocalStrategy::value_of_first_replica(at::ArrayRef<Tensor> local_components) {
  return local_components[0];
}

Tensor LocalStrategy::gather_over_replicas(at::ArrayRef<Tensor> local_components, int64_t axis) {
  std::vector<Tensor> components;
  for (const Tensor& component : local_components) components.push_back(component.to(at::kCPU));
  return at::cat(components, axis);
}

}  // namespace cohort::internal
