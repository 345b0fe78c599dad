#include "cohort/distribute/strategies/local_strategy.h"

#include <utility>

#include "cohort/core/observe/monitoring.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/replica_streams.h"
#include "cohort/distribute/gradients/cross_device_exchange.h"
#include "cohort/distribute/gradients/mirrored_exchange.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/distribute/strategies/task_save_group.h"
#include "cohort/distribute/variables/make_local_variable.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

LocalStrategy::LocalStrategy(Config config)
    : config_(std::move(config)),
      maker_(Task::current()),
      generators_(std::make_shared<StrategyGenerators>()),
      replicas_(
          [this] { return std::make_unique<std::unique_ptr<LocalReplicas>>(make_replicas()); }) {
  tell_generators_of_replicas();
  const bool may_have_others = config_.order == collective::SyncGroup::Order::kOfTree;
  if (config_.communicator != nullptr || may_have_others) {
    save_group_ = make_task_save_group(*this);
  }
  set_gauge("distribution_strategy_replica_gauge", {config_.name}, replicas().size());
}

// The current task's name of a device.
std::string LocalStrategy::own_name(const std::string& device) const {
  if (&Task::current() == &maker_) return device;
  return canonicalize(canonicalize_without_job_and_task(device));
}

std::vector<std::string> LocalStrategy::parameter_devices() const {
  if (config_.parameter_device.empty()) return worker_devices();
  return {own_name(config_.parameter_device)};
}

std::unique_ptr<LocalReplicas> LocalStrategy::make_replicas() const {
  std::vector<std::string> devices = config_.devices;
  if (&Task::current() != &maker_) {
    if (config_.communicator != nullptr) {
      throw FailedPreconditionError(
          str("this ", config_.name, " exchanges values with other tasks for ", maker_.to_string(),
              "; ", Task::current().to_string(), " needs one of its own"));
    }
    for (std::string& device : devices) device = own_name(device);
  }
  return std::make_unique<LocalReplicas>(
      LocalReplicas::Options{.devices = std::move(devices),
                             .generators = generators_,
                             .communicator = config_.communicator,
                             .cores = config_.cores,
                             .threads_per_replica = config_.threads_per_replica,
                             .order = config_.order});
}

std::unique_ptr<LocalReplicas> LocalStrategy::replace_replicas(
    std::vector<std::string> devices, std::shared_ptr<collective::Communicator> communicator,
    int cores) {
  config_.devices = std::move(devices);
  config_.communicator = std::move(communicator);
  config_.cores = cores;
  return std::exchange(replicas_.get(), make_replicas());
}

std::vector<random::RandomGenerator> LocalStrategy::replica_generators() {
  return replicas().generators();
}

void LocalStrategy::run(const std::shared_ptr<RunFrame>& frame,
                        const distribute::RunOptions& options) {
  const auto alive = shared_from_this();  // the step may release the last handle
  replicas().run(*this, frame, options);
}

std::shared_ptr<VariableImpl> LocalStrategy::create_variable(
    const distribute::VariableSpec& spec, const distribute::VariableInitializer& initializer) {
  LocalPlacement placement{.devices = replicas().torch_devices(),
                           .shared_storage = config_.shared_storage};
  if (!config_.parameter_device.empty()) {
    placement.parameter_device = torch_device(own_name(config_.parameter_device));
  }
  return make_local_variable(shared_from_this(), spec, initializer, placement);
}

std::unique_ptr<StepRunner> LocalStrategy::make_runner() {
  return make_local_runner(shared_from_this());
}

Tensor LocalStrategy::sum_of_local(at::ArrayRef<Tensor> local_values) const {
  if (config_.cross_device_ops == nullptr) return StrategyCore::sum_of_local(local_values);
  const distribute::PerReplica<Tensor> values({local_values.begin(), local_values.end()});
  return config_.cross_device_ops->reduce(distribute::ReduceOp::SUM, values, "CPU:0").item();
}

std::unique_ptr<GradientExchange> LocalStrategy::make_exchange(std::vector<UpdateTarget> targets) {
  auto exchange = std::make_unique<MirroredExchange>(std::move(targets), group_pointer(),
                                                     config_.communication_options.bytes_per_pack);
  if (config_.cross_device_ops == nullptr) return exchange;
  return std::make_unique<CrossDeviceExchange>(std::move(exchange), *config_.cross_device_ops,
                                               static_cast<size_t>(num_local_replicas()));
}

}  // namespace cohort::internal
