#include "cohort/parameter_server/cluster_coordinator.h"

#include <string>
#include <vector>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/observe/time_histogram.h"
#include "cohort/core/program/task.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/data/nodes/shuffle_seeds.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/distribute/variables/variable_creation.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/exact_totals.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/variables/closure_context.h"

namespace cohort::distribute::coordinator {
namespace {

using internal::str;

std::chrono::steady_clock::time_point after(std::chrono::milliseconds timeout) {
  return std::chrono::steady_clock::now() + internal::bounded_wait(timeout);
}

ClusterCoordinatorOptions with_bounded_waits(ClusterCoordinatorOptions options) {
  for (std::chrono::milliseconds* const wait :
       {&options.closure_timeout, &options.max_recovery, &options.worker_pause, &options.ps_grace,
        &options.end_timeout, &options.report_after, &options.summary_every}) {
    *wait = internal::bounded_wait(*wait);
  }
  return options;
}

internal::CoordinatorCore& existing(const std::shared_ptr<internal::CoordinatorCore>& core) {
  if (core != nullptr) return *core;
  throw FailedPreconditionError(
      "this ClusterCoordinator was moved from; use the object that it was moved to");
}

// Errors: InvalidArgument (they cannot be added up to what all shards have).
void check_totals(const Structure& first, const Structure& own, size_t shard,
                  const std::string& function) {
  const std::string what = str("sum_over_shards: the totals that '", function, "' returned ");
  const auto difference = first.first_difference(own);
  if (difference) {
    throw InvalidArgumentError(str(what, "for shards 0 (here) and ", shard,
                                   " (there) differ in form at ", *difference,
                                   "; return the same form for each shard"));
  }
  const std::vector<Leaf> expected = first.flatten(), leaves = own.flatten();
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i].is_strings() || leaves[i].tensor().scalar_type() == at::kBool) {
      throw InvalidArgumentError(str(what, "for shard ", shard, " hold ",
                                     leaves[i].is_strings() ? "strings" : "truth values",
                                     ", which cannot be added up; return numbers"));
    }
    if (leaves[i].sizes() != expected[i].sizes()) {
      throw InvalidArgumentError(str(what, "hold ", internal::describe(expected[i].tensor()),
                                     " for shard 0 where they hold ",
                                     internal::describe(leaves[i].tensor()), " for shard ", shard,
                                     "; return the same shapes for each shard"));
    }
  }
}

// Whose shuffles without a seed have one of the worker's. Other workers would read one order at one
// time.
data::Dataset in_order_of_worker(const data::Dataset& dataset, int worker) {
  constexpr uint64_t kApart = 0x9E3779B97F4A7C15;
  std::vector<uint64_t> seeds = internal::drawn_seeds(dataset.node());
  for (uint64_t& seed : seeds) seed += kApart * static_cast<uint64_t>(worker);
  return data::Dataset(internal::with_agreed_seeds(dataset.node(), seeds), dataset.options());
}

// The strategy's coordinator, or a new one with these options.
std::shared_ptr<internal::CoordinatorCore> coordinator_of(
    const ParameterServerStrategy& strategy, const ClusterCoordinatorOptions& options) {
  const auto& core = strategy.parameter_server_core();
  if (!core->cluster()->is_coordinator()) {
    throw FailedPreconditionError(
        "a ClusterCoordinator runs in the cluster's coordinator, the chief; workers and ps tasks "
        "call Server(resolver).join()");
  }
  if (options.window < 1 || options.max_queued < 0) {
    throw InvalidArgumentError(str("ClusterCoordinatorOptions: window is ", options.window,
                                   " and must be at least 1, max_queued is ", options.max_queued,
                                   " and must not be negative"));
  }
  if (options.summary_every <= std::chrono::milliseconds(0)) {
    throw InvalidArgumentError(str("ClusterCoordinatorOptions: summary_every is ",
                                   options.summary_every.count(), " ms and must be above 0"));
  }
  for (const auto& [option, duration] :
       {std::pair("closure_timeout", options.closure_timeout),
        std::pair("max_recovery", options.max_recovery),
        std::pair("worker_pause", options.worker_pause), std::pair("ps_grace", options.ps_grace),
        std::pair("end_timeout", options.end_timeout),
        std::pair("report_after", options.report_after)}) {
    internal::check_not_negative(str("ClusterCoordinatorOptions: ", option), duration);
  }
  return internal::LeaderSide::share_coordinator(core->leader(), with_bounded_waits(options));
}

}  // namespace

RemoteValue::RemoteValue(std::shared_ptr<internal::RemoteResult> result)
    : result_(std::move(result)) {}

const std::shared_ptr<internal::RemoteResult>& RemoteValue::result() const {
  if (!result_.empty()) return result_;
  throw FailedPreconditionError(
      "this RemoteValue is that of no function: assign what schedule() returns to it first (or use "
      "the handle that it was moved to)");
}

Structure RemoteValue::fetch(std::chrono::milliseconds timeout) const {
  static internal::TimeHistogram& times = internal::time_histogram("remote_value_fetch");
  const internal::TimedScope timed(times);
  // The result stays as it is: for who fetches it again, and for functions that take it.
  return internal::unshared(result()->get(after(timeout), "the scheduled function"));
}

RemoteValueStatus RemoteValue::status() const {
  switch (result()->status()) {
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
                                   std::shared_ptr<internal::ParameterServerCore> strategy,
                                   std::string function, std::shared_ptr<const void> source)
    : core_(std::move(core)),
      strategy_(std::move(strategy)),
      function_(std::move(function)),
      source_(std::move(source)) {}

PerWorkerIterator PerWorkerDataset::iterator() const {
  return PerWorkerIterator(core_->make_input(function_, internal::InputKind::kIterator, source_));
}

PerReplicaSpec PerWorkerDataset::element_spec() const {
  const internal::ScopedTask as_worker(internal::Task::named(internal::kWorker, 0));
  const internal::ScopedDatasetFunction no_variables;
  return internal::with_typed_errors(function_.c_str(), [&] {
    internal::WorkerSide& worker = *strategy_->worker();
    return worker.functions().input(function_)(worker.input_context(0)).element_spec();
  });
}

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy)
    : strategy_(std::make_shared<ParameterServerStrategy>(strategy)),
      core_(coordinator_of(strategy, {})) {}

ClusterCoordinator::ClusterCoordinator(const ParameterServerStrategy& strategy,
                                       const ClusterCoordinatorOptions& options)
    : strategy_(std::make_shared<ParameterServerStrategy>(strategy)),
      core_(coordinator_of(strategy, options)) {
  if (core_->options() == with_bounded_waits(options)) return;
  throw FailedPreconditionError(
      "this strategy has a ClusterCoordinator with other options; make the first one with them, or "
      "end all handles of "
      "it before");
}

RemoteValue ClusterCoordinator::schedule_erased(const WorkerFunction& function, Inputs inputs,
                                                std::vector<Value> arguments) const {
  if (function.makes_input()) {
    throw InvalidArgumentError(
        str("'", function.name(), "' makes an input; hand it to ", "create_per_worker_dataset"));
  }
  std::vector<internal::CoordinatorCore::Argument> given;
  for (Value& argument : arguments) {
    given.push_back(
        {std::move(argument.value), std::move(argument.result), std::move(argument.of_worker)});
  }
  internal::refuse_in_closure("schedule");
  return RemoteValue(existing(core_).schedule(function.name(), inputs, std::move(given)));
}

RemoteValue ClusterCoordinator::schedule_captured(internal::StructureFunction<> function,
                                                  Inputs inputs,
                                                  std::vector<Value> arguments) const {
  existing(core_);
  const auto core = strategy_->parameter_server_core();
  const std::string name = core->worker()->functions().keep_captured(std::move(function));
  try {
    const RemoteValue value =
        schedule_erased(WorkerFunction(name, false), std::move(inputs), std::move(arguments));
    value.result()->on_end([core, name](const internal::RemoteResult&) {
      core->worker()->functions().drop_captured(name);
    });
    return value;
  } catch (...) {
    core->worker()->functions().drop_captured(name);
    throw;
  }
}

PerWorkerValue ClusterCoordinator::create_per_worker_value(const WorkerFunction& function) const {
  if (function.makes_input()) {
    throw InvalidArgumentError(
        str("'", function.name(), "' makes an input; hand it to ", "create_per_worker_dataset"));
  }
  return PerWorkerValue(existing(core_).make_input(function.name(), internal::InputKind::kValue));
}

std::string ClusterCoordinator::new_input_name() const {
  existing(core_);
  const auto core = strategy_->parameter_server_core();
  core->cluster()->require_workers_here("a dataset, or a function over the program's own objects,");
  return core->worker()->functions().new_input_name();
}

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(const data::Dataset& dataset) const {
  return create_per_worker_dataset(
      strategy_->function(new_input_name(), [dataset](const InputContext& context) {
        return in_order_of_worker(dataset, context.input_pipeline_id);
      }));
}

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const DistributedDataset& dataset) const {
  return create_per_worker_dataset(
      strategy_->function(new_input_name(), [dataset] { return dataset; }));
}

Structure ClusterCoordinator::sum_over_shards(const WorkerFunction& function,
                                              int64_t num_shards) const {
  if (num_shards < 1) {
    throw InvalidArgumentError(
        str("sum_over_shards: num_shards is ", num_shards, " and must be at least 1"));
  }
  std::vector<RemoteValue> values;
  for (int64_t shard = 0; shard < num_shards; ++shard) {
    values.push_back(schedule(function, shard, num_shards));
  }
  join();
  const std::vector<Structure> totals = fetch(values);
  for (size_t shard = 0; shard < totals.size(); ++shard) {
    check_totals(totals[0], totals[shard], shard, function.name());
  }
  const std::string what =
      str("sum_over_shards: the sum of the totals that '", function.name(), "' returned");
  return map_structures(totals, [&what](const std::vector<Leaf>& leaves) -> Leaf {
    return internal::exact_sum(leaves, what);
  });
}

int get_current_worker_index() {
  const internal::Task& task = internal::Task::current();
  if (task.job() == internal::kWorker) return task.index();
  throw FailedPreconditionError(
      "get_current_worker_index: this thread runs no function of a worker; call it in a function "
      "that "
      "ClusterCoordinator schedules, or that makes a worker's input");
}

void ClusterCoordinator::join() const {
  internal::refuse_in_closure("join");
  existing(core_).queue().join();
}
void ClusterCoordinator::join(std::chrono::milliseconds timeout) const {
  internal::refuse_in_closure("join");
  existing(core_).queue().join(after(timeout));
}
bool ClusterCoordinator::done() const {
  internal::refuse_in_closure("done");
  return existing(core_).queue().done();
}

PerWorkerDataset ClusterCoordinator::create_per_worker_dataset(
    const WorkerFunction& function) const {
  if (!function.makes_input()) {
    throw InvalidArgumentError(
        str("'", function.name(), "' does not make an input: it must return ",
            "a Dataset or a DistributedDataset, and take an InputContext or ", "nothing"));
  }
  const auto& strategy = strategy_->parameter_server_core();
  return {existing(core_).shared_from_this(), strategy, function.name(),
          strategy->worker()->functions().hold_input(function.name())};
}

std::vector<Structure> ClusterCoordinator::fetch(const std::vector<RemoteValue>& values) const {
  std::vector<Structure> results;
  for (const RemoteValue& value : values) results.push_back(value.fetch());
  return results;
}

std::vector<Structure> ClusterCoordinator::fetch(const PerWorkerValue& value,
                                                 std::chrono::milliseconds timeout) const {
  internal::refuse_in_closure("fetch of each worker's value");
  const auto reads = existing(core_).read_value(value.handle());
  const auto deadline = after(timeout);
  std::vector<Structure> values;
  for (size_t worker = 0; worker < reads.size(); ++worker) {
    values.push_back(
        reads[worker]->get(deadline, str("the reading of worker ", worker, "'s value")));
  }
  return values;
}

std::vector<FailedClosure> ClusterCoordinator::errors() const {
  std::vector<FailedClosure> failed;
  for (const internal::ClosureError& error : existing(core_).queue().errors()) {
    failed.push_back(
        {error.closure, error.function, error.worker, internal::record_error(error.error).message});
  }
  return failed;
}

double ClusterCoordinator::mean_staleness() const {
  existing(core_);
  const internal::StoreClient& store = strategy_->parameter_server_core()->variables()->store();
  int64_t updates = 0, staleness = 0;
  for (int ps = 0; ps < store.num_ps(); ++ps) {
    const auto load = store.load(ps);
    updates += load.updates;
    staleness += load.staleness;
  }
  return updates == 0 ? 0 : static_cast<double>(staleness) / static_cast<double>(updates);
}

std::vector<WorkerState> ClusterCoordinator::workers() const { return existing(core_).workers(); }

const ParameterServerStrategy& ClusterCoordinator::strategy() const {
  existing(core_);
  return *strategy_;
}

}  // namespace cohort::distribute::coordinator
