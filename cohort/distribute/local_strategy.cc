#include "cohort/distribute/local_strategy.h"

#include "cohort/core/monitoring.h"
#include "cohort/distribute/make_local_variable.h"
#include "cohort/distribute/mirrored_exchange.h"
#include "cohort/distribute/task_save_group.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

LocalStrategy::LocalStrategy(Config config)
    : config_(std::move(config)), replicas_(config_.devices, config_.communicator) {
  if (group().spans_tasks()) save_group_ = make_task_save_group(group());
  set_gauge("distribution_strategy_replica_gauge", {config_.name}, replicas_.size());
}

std::vector<random::RandomGenerator> LocalStrategy::replica_generators() {
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

std::unique_ptr<GradientExchange> LocalStrategy::make_exchange(std::vector<UpdateTarget> targets) {
  return std::make_unique<MirroredExchange>(std::move(targets), group());
}

}  // namespace cohort::internal
