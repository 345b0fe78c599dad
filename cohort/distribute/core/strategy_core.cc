#include "cohort/distribute/core/strategy_core.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "cohort/collective/replica_collectives.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/distribute/core/input_options.h"
#include "cohort/distribute/core/input_workers.h"

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

std::string text_of(const InputPlace& place) {
  return place.pass == InputPlace::kRestored
             ? str("step ", place.step, " from a restored position of dataset ", place.dataset)
             : str("step ", place.step, " of pass ", place.pass, " over dataset ", place.dataset);
}

// Throws the same on every task: the steps of task 0 and of another.
[[noreturn]] void throw_different_steps(collective::SyncGroup& group, const InputPlace& first,
                                        int task, const InputPlace& other) {
  collective::Communicator& tasks = group.between();
  throw FailedPreconditionError(str("tasks read different steps: ", tasks.task_name(0), " ",
                                    text_of(first), ", ", tasks.task_name(task), " ",
                                    text_of(other),
                                    " (steps and passes count from 0, distributed datasets from "
                                    "1); every task must make, restore and "
                                    "read the same iterators in the same order"));
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
  if (are_of_all_replicas(local_values.size()) && local_values[0].layout() == at::kStrided) {
    return collective::sum_of_all_replicas(local_values);
  }
  if (local_values[0].layout() == at::kSparse) {
    return collective::sum_sparse(group(), local_values, name);
  }
  if (group().view()->division != nullptr) {
    return collective::sum_by_tree(group(), local_values, name);
  }
  Tensor sum = sum_of_local(local_values);
  if (!group().spans_tasks()) return sum;
  sum = local_values.size() == 1 ? sum.clone(at::MemoryFormat::Contiguous) : sum.contiguous();
  collective::sum_over_tasks(group(), sum, name);
  return sum;
}

Tensor StrategyCore::sum_of_local(at::ArrayRef<Tensor> local_values) const {
  Tensor sum = local_values[0].to(at::kCPU);
  for (const Tensor& value : local_values.slice(1)) sum = sum + value.to(at::kCPU);
  return sum;
}

Tensor StrategyCore::gather_over_replicas(at::ArrayRef<Tensor> local_values, int64_t axis,
                                          std::string_view name) const {
  if (are_of_all_replicas(local_values.size())) {
    const std::vector<Tensor> values = on_host(local_values);
    collective::check_can_concat(values, axis);
    return at::cat(values, axis);
  }
  return collective::concat_replicas(group(), on_host(local_values), axis, name);
}

Tensor StrategyCore::value_of_first_replica(at::ArrayRef<Tensor> local_values,
                                            std::string_view name) const {
  const Tensor value = local_values[0].to(at::kCPU).clone(at::MemoryFormat::Contiguous);
  if (are_of_all_replicas(local_values.size())) return value;
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

StrategyCore::InputPipelines StrategyCore::input_pipelines(int local_workers) {
  struct OfTask {
    int64_t workers;
    int64_t datasets;  // that the task has distributed
  };
  const std::vector<OfTask> tasks = collective::all_tasks_values(
      group(), OfTask{local_workers, datasets_.load()}, "number of input workers");
  InputPipelines all{.total = 0, .each = {}};
  for (size_t task = 0; task < tasks.size(); ++task) {
    if (static_cast<int>(task) == group().view()->task) all.first = all.total;
    all.each.push_back(static_cast<int>(tasks[task].workers));
    all.total += all.each.back();
    all.dataset = std::max(all.dataset, tasks[task].datasets + 1);  // also where a task is new
  }
  datasets_ = all.dataset;
  return all;
}

InputAnswer StrategyCore::agree_on_input(const InputStatus& here, const InputPlace& place) {
  if (!group().spans_tasks()) return [here] { return here; };
  struct OfTask {
    InputStatus status;
    InputPlace place;
  };
  // Waits at once: the tasks are about as far.
  const std::vector<OfTask> all =
      collective::all_tasks_values(group(), OfTask{here, place}, "input");
  InputStatus combined = here;
  for (const OfTask& one : all) {
    if (one.place != all[0].place) {
      throw_different_steps(group(), all[0].place, static_cast<int>(&one - all.data()), one.place);
    }
    combined = combine(combined, one.status);
  }
  return [combined] { return combined; };
}

}  // namespace cohort::internal
