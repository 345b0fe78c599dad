#include "cohort/distribute/strategy_core.h"

#include <algorithm>
#include <numeric>

#include "cohort/collective/replica_collectives.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/device.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/cross_device_ops.h"
#include "cohort/distribute/input_options.h"
#include "cohort/distribute/input_workers.h"

namespace cohort::internal {

using distribute::InputOptions;
using distribute::InputReplicationMode;
using distribute::InputWorker;
using distribute::InputWorkers;

namespace {

std::string host_of(const std::string& device) { return canonicalize("/device:CPU:0", device); }

std::vector<Tensor> on_host(at::ArrayRef<Tensor> values) {
  std::vector<Tensor> copies;
  for (const Tensor& value : values) copies.push_back(value.to(at::kCPU));
  return copies;
}

}  // namespace

std::shared_ptr<VariableImpl> StrategyCore::create_variable_on(
    const std::string& device, const distribute::VariableSpec& spec,
    const distribute::VariableInitializer&) {
  throw InvalidArgumentError(
      str("a variable creator asks for device ", quoted(device), " for variable ",
          quoted(spec.options.name), ", but a ", name(),
          " has no ps tasks and keeps variables on devices of its own; leave the device empty"));
}

Tensor StrategyCore::sum_over_replicas(at::ArrayRef<Tensor> local_values,
                                       std::string_view name) const {
  if (local_values[0].layout() == at::kSparse) {
    return collective::sum_sparse(group(), local_values, name);
  }
  if (const distribute::CrossDeviceOps* ops = cross_device_ops()) {
    return ops
        ->reduce(distribute::ReduceOp::SUM,
                 distribute::PerReplica<Tensor>({local_values.begin(), local_values.end()}),
                 "CPU:0")
        .item();
  }
  Tensor sum = local_values[0].to(at::kCPU);
  for (const Tensor& value : local_values.slice(1)) sum = sum + value.to(at::kCPU);
  if (!group().spans_tasks()) return sum;
  sum = local_values.size() == 1 ? sum.clone(at::MemoryFormat::Contiguous) : sum.contiguous();
  collective::sum_over_tasks(group(), sum, name);
  return sum;
}

Tensor StrategyCore::gather_over_replicas(at::ArrayRef<Tensor> local_values, int64_t axis,
                                          std::string_view name) const {
  return collective::concat_replicas(group(), on_host(local_values), axis, name);
}

Tensor StrategyCore::value_of_first_replica(at::ArrayRef<Tensor> local_values,
                                            std::string_view name) const {
  const Tensor value = local_values[0].to(at::kCPU).clone(at::MemoryFormat::Contiguous);
  collective::take_from_first_task(group(), value, name);
  return value;
}

InputWorkers StrategyCore::input_workers(const InputOptions& options) const {
  if (is_default()) return InputWorkers{{.input_device = "CPU:0", .compute_devices = {"CPU:0"}}};
  const std::vector<std::string>& devices = worker_devices();
  if (options.experimental_replication_mode == InputReplicationMode::PER_WORKER) {
    const std::string host = host_of(devices.front());
    // Batches that are not fetched stay where they are read.
    const bool fetch = options.experimental_fetch_to_device.value_or(true);
    return InputWorkers{
        {.input_device = host,
         .compute_devices = fetch ? devices : std::vector<std::string>(devices.size(), host)}};
  }
  std::vector<InputWorker> workers;
  for (const std::string& device : devices) {
    const bool on_device = options.experimental_place_dataset_on_device;
    workers.push_back({on_device ? device : host_of(device), {device}});
  }
  return InputWorkers(workers);
}

StrategyCore::InputPipelines StrategyCore::input_pipelines(int local_workers) const {
  const std::vector<int> workers =
      collective::all_tasks_values(group(), local_workers, "number of input workers");
  const auto here = workers.begin() + group().view()->task;
  return {std::accumulate(workers.begin(), workers.end(), 0),
          std::accumulate(workers.begin(), here, 0)};
}

InputAnswer StrategyCore::agree_on_input(const InputStatus& here) {
  if (!group().spans_tasks()) return [here] { return here; };
  // Waits at once: the tasks are about as far.
  const std::vector<InputStatus> all = collective::all_tasks_values(group(), here, "input");
  return [combined = std::accumulate(all.begin(), all.end(), here, combine)] { return combined; };
}

}  // namespace cohort::internal
