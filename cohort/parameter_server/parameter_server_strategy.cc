#include "cohort/parameter_server/parameter_server_strategy.h"

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/distribute/core/strategy_devices.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/runner/early_failure.h"
#include "cohort/parameter_server/variables/closure_context.h"

namespace cohort::distribute {
namespace {

using internal::ClusterRole;
using internal::ParameterServerCore;
using internal::str;

void check_jobs(const train::ClusterSpec& cluster) {
  for (const auto& [job, tasks] : cluster.as_dict()) {
    if (job == internal::kChief || job == internal::kWorker || job == internal::kPs ||
        job == internal::kEvaluator) {
      continue;
    }
    throw InvalidArgumentError(str("Disallowed task type found in cluster spec: '", job,
                                   "'; a ParameterServerStrategy has jobs chief, worker, ps and "
                                   "evaluator"));
  }
  if (cluster.has_job(internal::kChief) && cluster.num_tasks(internal::kChief) > 1) {
    throw InvalidArgumentError(str("there must be at most one 'chief' job, but the cluster has ",
                                   cluster.num_tasks(internal::kChief)));
  }
  for (const char* job : {internal::kWorker, internal::kPs}) {
    if (cluster.has_job(job) && cluster.num_tasks(job) > 0) continue;
    throw InvalidArgumentError(
        str("there must be at least one ", job, " in the cluster, but there is none",
            cluster.jobs().empty()
                ? "; TF_CONFIG says which tasks there are, `cohort launch --workers "
                  "3 --ps 2 --chief -- PROGRAM` sets it, and a SimpleClusterResolver "
                  "names servers of one process"
                : ""));
  }
}

ClusterRole role_of(const cluster_resolver::ClusterResolver& resolver) {
  const std::string job = resolver.task_type().value_or("");
  if (job.empty() || job == internal::kChief) return ClusterRole::kCoordinator;
  if (job == internal::kWorker) return ClusterRole::kWorker;
  if (job == internal::kPs) return ClusterRole::kPs;
  if (job == internal::kEvaluator) return ClusterRole::kEvaluator;
  throw InvalidArgumentError(str("Unrecognized task_type: ", job));
}

std::vector<std::string> devices(const ParameterServerStrategyOptions& options) {
  if (!options.worker_devices.empty()) {
    return internal::checked_devices(options.worker_devices, "ParameterServerStrategy");
  }
  auto found = config::list_logical_devices("GPU");
  if (found.empty()) {
    found = config::list_logical_devices("CPU");
    found.resize(1);
  }
  std::vector<std::string> names;
  for (const auto& device : found) names.push_back(device.name);
  return names;
}

std::shared_ptr<ParameterServerCore> make_core(const cluster_resolver::ClusterResolver& resolver,
                                               const ParameterServerStrategyOptions& options) {
  internal::check_not_negative("ParameterServerStrategyOptions: timeout", options.timeout);
  ParameterServerCore::Setup setup;
  internal::PsCluster::Setup& cluster = setup.cluster;
  cluster.spec = resolver.cluster_spec();
  cluster.role = role_of(resolver);
  cluster.timeout = internal::bounded_wait(options.timeout);
  cluster.keepalive_time = internal::bounded_wait(options.server_options.keepalive_time);
  cluster.keepalive_timeout = internal::bounded_wait(options.server_options.keepalive_timeout);
  setup.partitioner = options.variable_partitioner;
  setup.placement = options.variable_placement;
  setup.devices = devices(options);
  check_jobs(cluster.spec);
  if (const auto job = resolver.task_type()) {
    cluster.self = TaskId{*job, resolver.task_id().value_or(0)};
  }
  cluster.server_options = options.server_options;
  if (resolver.task_type() == internal::kChief) {
    cluster.server = std::make_shared<Server>(resolver, options.server_options);
    cluster.told = internal::wait_for_tasks(*cluster.server);
  }
  internal::log_info("ParameterServerStrategy with ", cluster.spec.num_tasks(internal::kWorker),
                     " workers and ", cluster.spec.num_tasks(internal::kPs), " ps tasks");
  return ParameterServerCore::make(std::move(setup));
}

}  // namespace

ParameterServerStrategy::ParameterServerStrategy(const cluster_resolver::ClusterResolver& resolver,
                                                 const ParameterServerStrategyOptions& options)
    : ParameterServerStrategy(make_core(resolver, options)) {}

ParameterServerStrategy::ParameterServerStrategy(std::shared_ptr<ParameterServerCore> core)
    : Strategy(core), core_(std::move(core)) {}

DistributedIterator& ParameterServerStrategy::input(size_t index) {
  const internal::ClosureContext* closure = internal::current_closure();
  if (closure != nullptr && index < closure->inputs.size()) return *closure->inputs[index];
  throw FailedPreconditionError(
      "this function takes the worker's input: schedule it with the iterator of "
      "ClusterCoordinator::create_per_worker_dataset");
}

// The function must not keep the strategy alive that keeps it.
void ParameterServerStrategy::add_dataset_function(
    const std::string& name, std::function<data::Dataset(const InputContext&)> fn) const {
  core_->worker()->functions().add_input(
      name,
      [fn, weak = std::weak_ptr<ParameterServerCore>(core_)](const InputContext& context) {
        const ParameterServerStrategy strategy(weak.lock());
        return strategy.distribute_datasets_from_function(
            [&](const InputContext&) { return fn(context); });
      },
      fn);
}

void ParameterServerStrategy::add_distributed_function(
    const std::string& name, std::function<DistributedDataset(const InputContext&)> fn) const {
  core_->worker()->functions().add_input(name, std::move(fn));
}

}  // namespace cohort::distribute
