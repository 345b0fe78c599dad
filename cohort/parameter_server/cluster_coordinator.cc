#include "cohort/parameter_server/cluster_coordinator.h"

#include "cohort/core/error.h"
#include "cohort/parameter_server/coordinator_core.h"

namespace cohort::distribute::coordinator {
namespace {

using internal::str;

std::chrono::steady_clock::time_point after(std::chrono::milliseconds timeout) {
  return std::chrono::steady_clock::now() + timeout;
}

}  // namespace

RemoteValue::RemoteValue(std::shared_ptr<internal::RemoteResult> result)
    : result_(std::move(result)) {}

Structure RemoteValue::fetch(std::chrono::milliseconds timeout) const {
  return result_->get(after(timeout), "the scheduled function");
}

RemoteValueStatus RemoteValue::status() const {
  switch (result_->status()) {
    case internal::RemoteStatus::kNotReady:
      return RemoteValueStatus::NOT_READY;
    case internal::RemoteStatus::kAborted:
      return RemoteValueStatus::ABORTED;
    case internal::RemoteStatus::kReady:
      return RemoteValueStatus::READY;
  }
  return RemoteValueStatus::ABORTED;
}

PerWorkerDataset::PerWorkerDataset(std::shared_ptr<internal::CoordinatorCore> core,
                                   std::string function)
    : core_(std::move(core)), function_(std::move(function)) {}

PerWorkerIterator PerWorkerDataset::iterator() const {
  return PerWorkerIterator(core_->make_input(function_));
}

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy,
                                       const ClusterCoordinatorOptions& options) {
  if (strategy.parameter_server_core()->role() != internal::ClusterRole::kCoordinator) {
    throw FailedPreconditionError(
        "a ClusterCoordinator runs in the cluster's coordinator, the chief; workers and ps tasks "
        "call "
        "Server(resolver).join()");
  }
  if (options.window < 1 || options.max_queued < 0) {
    throw InvalidArgumentError(str("ClusterCoordinatorOptions: window is ", options.window,
                                   " and must be at least 1, max_queued is ", options.max_queued,
                                   " and must not be negative"));
  }
  core_ = std::make_shared<internal::CoordinatorCore>(strategy.parameter_server_core(), options);
}

ClusterCoordinator::~ClusterCoordinator() {
  if (core_ != nullptr) core_->stop();
}
ClusterCoordinator::ClusterCoordinator(ClusterCoordinator&&) noexcept = default;
ClusterCoordinator& ClusterCoordinator::operator=(ClusterCoordinator&& other) noexcept {
  if (core_ != nullptr && core_ != other.core_) core_->stop();
  core_ = std::move(other.core_);
  return *this;
}

RemoteValue ClusterCoordinator::schedule_erased(const WorkerFunction& function,
                                                std::vector<uint64_t> inputs,
                                                std::vector<Structure> arguments) const {
  if (function.makes_input()) {
    throw InvalidArgumentError(
        str("'", function.name(), "' makes an input; hand it to ", "create_per_worker_dataset"));
  }
  return RemoteValue(core_->schedule(function.name(), std::move(inputs), std::move(arguments)));
}

void ClusterCoordinator::join() const { join(std::chrono::hours(24 * 365)); }
void ClusterCoordinator::join(std::chrono::milliseconds timeout) const {
  core_->queue().join(after(timeout));
}
bool ClusterCoordinator::done() const { return core_->queue().done(); }

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const WorkerFunction& function) const {
  if (!function.makes_input()) {
    throw InvalidArgumentError(
        str("'", function.name(), "' does not make an input: it must return ",
            "a Dataset or a DistributedDataset, and take an InputContext or ", "nothing"));
  }
  return {core_, function.name()};
}

std::vector<Structure> ClusterCoordinator::fetch(const std::vector<RemoteValue>& values) const {
  std::vector<Structure> results;
  for (const RemoteValue& value : values) results.push_back(value.fetch());
  return results;
}

std::vector<FailedClosure> ClusterCoordinator::errors() const {
  std::vector<FailedClosure> failed;
  for (const internal::ClosureError& error : core_->queue().errors()) {
    failed.push_back(
        {error.closure, error.function, error.worker, internal::record_error(error.error).message});
  }
  return failed;
}

std::vector<WorkerState> ClusterCoordinator::workers() const { return core_->workers(); }

}  // namespace cohort::distribute::coordinator
