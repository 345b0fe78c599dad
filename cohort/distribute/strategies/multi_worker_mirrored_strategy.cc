#include "cohort/distribute/strategies/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <random>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/resolvers/default_cluster_resolver.h"
#include "cohort/cluster/resolvers/process_variables.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/sum_tree.h"
#include "cohort/core/cpu/numeric_environment.h"
#include "cohort/core/durations.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/elastic_workers.h"
#include "cohort/core/program/task.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/text.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/distribute/strategies/multi_worker_strategy.h"
#include "cohort/ops/generator_streams.h"
#include "cohort/ops/random.h"
#include "cohort/train/summary/recording.h"

namespace cohort::distribute {
namespace {

using internal::ClusterFormer;
using internal::GroupConnection;
using internal::GroupWatch;
using internal::MultiWorkerStrategy;
using internal::str;
using internal::Task;
using internal::TaskServer;
using internal::WorkerPlace;

// The code of a process that is one task of a cluster acts for that task.
void act_for(const TaskId& id, int rank) {
  const Task& task = Task::named(id.job, id.index);
  if (!Task::is_scoped()) {
    Task::set_for_process(task);
    return internal::leave_summaries_to_another_task(rank != 0);
  }
  if (&Task::current() == &task) return;
  throw FailedPreconditionError(str("code of ", Task::current().to_string(),
                                    " makes the strategy of ", id, "; each task makes its own"));
}

std::vector<std::string> local_devices(const cluster_resolver::ClusterResolver& resolver) {
  auto devices = config::list_logical_devices("GPU");
  if (const auto accelerators = resolver.num_accelerators()) {
    const auto gpus = accelerators->find("GPU");
    if (gpus != accelerators->end() && gpus->second < static_cast<int>(devices.size())) {
      devices.resize(static_cast<size_t>(std::max(0, gpus->second)));
    }
  }
  if (devices.empty()) devices = config::list_logical_devices("CPU");
  std::vector<std::string> names;
  for (const auto& device : devices) names.push_back(device.name);
  return names;
}

std::string text_of(const ElasticOptions& elastic) {
  if (elastic.replicas == 0) return "none";
  return str(elastic.replicas, " with ", elastic.threads_per_replica, " threads");
}

// The workers compute the same updates from the same sums, each for itself: they must round alike.
void compare_numerics(internal::membership::MembershipAgent& agent, const std::string& group,
                      const MultiWorkerMirroredStrategyOptions& options) {
  const ElasticOptions& elastic = options.elastic;
  const std::vector<std::string> warnings = agent.declare(
      {{.name = "numeric environment",
        .text = internal::numeric_environment(),
        .strict = options.strict_bitwise},
       {.name = str("elastic replicas of ", group), .text = text_of(elastic), .strict = true}});
  for (const std::string& warning : warnings) {
    internal::log_warning("the workers' variables may drift apart in their last bits: ", warning);
  }
}

// A task that is registered with its cluster, and the name of the group that it is to form.
struct Registered {
  std::shared_ptr<TaskServer> server;
  internal::membership::ViewPtr view;
  std::string group;
};

Registered register_task(const MultiWorkerMirroredStrategyOptions& options,
                         const cluster_resolver::ClusterResolver& resolver) {
  Registered task;
  task.server = TaskServer::find_or_start(resolver, options.server_options);
  internal::membership::MembershipAgent& agent = task.server->server().core().membership().agent();
  task.view = agent.wait_for_start();
  const bool is_elastic = options.elastic.replicas > 0;
  if (!is_elastic) {
    const auto timeout = internal::bounded_wait(options.server_options.start_timeout);
    task.view = agent.wait_for_group(1, timeout);
  }
  // A task that comes later finds the group by its name.
  task.group = task.server->next_group(is_elastic ? 0 : task.view->generation);
  compare_numerics(agent, task.group, options);
  return task;
}

GroupConnection connect(const MultiWorkerMirroredStrategyOptions& options,
                        const cluster_resolver::ClusterResolver& resolver, const WorkerPlace& place,
                        const std::vector<std::string>& devices) {
  const Registered task = register_task(options, resolver);
  const c10::Device first = internal::torch_device(devices.at(0));
  return internal::connect_group(
      task.server, std::make_shared<GroupWatch>(place.workers, place.self, *task.view),
      {.name = task.group,
       .generation = task.view->generation,
       .tasks = place.workers,
       .rank = place.rank,
       .timeout = internal::bounded_wait(options.server_options.start_timeout),
       .options = options.communication_options,
       .gpu = first.is_cpu() ? std::nullopt : std::optional(first)});
}

// A program that sets no seed draws one: here all workers take the one that the first has drawn. It
// is none of the program's own sequence, which goes on as that of a worker that is alone.
void agree_on_seed(internal::membership::MembershipAgent& agent) {
  constexpr const char* kKey = "elastic/seed";
  std::random_device device;
  const uint64_t drawn = uint64_t{device()} << 32 | device();
  agent.compare_and_set(kKey, std::nullopt, str(static_cast<int64_t>(drawn)));
  const auto seed = internal::parse_number<int64_t>(agent.find(kKey).value_or(""));
  if (seed) internal::set_seed_if_none(static_cast<uint64_t>(*seed));
}

std::shared_ptr<ClusterFormer> make_former(MultiWorkerMirroredStrategyOptions options,
                                           const cluster_resolver::ClusterResolver& resolver,
                                           const WorkerPlace& place) {
  options.server_options.elastic = {.min_tasks = options.elastic.min_workers,
                                    .start_wait = options.elastic.start_wait};
  const Registered task = register_task(options, resolver);
  agree_on_seed(task.server->server().core().membership().agent());
  const auto timeout = internal::bounded_wait(options.server_options.start_timeout);
  return std::make_shared<ClusterFormer>(
      ClusterFormer::Options{.server = task.server,
                             .self = place.self,
                             .group = task.group,
                             .program = text_of(options.elastic),
                             .min_workers = options.elastic.min_workers,
                             .timeout = timeout,
                             .communication_options = options.communication_options});
}

void log_start(const WorkerPlace& place, const std::vector<std::string>& devices,
               const cluster_resolver::ClusterResolver& resolver, const ElasticOptions& elastic) {
  std::string text;
  for (const std::string& device : devices) text += (text.empty() ? "'" : ", '") + device + "'";
  const std::string has = elastic.replicas == 0
                              ? str("with local devices (", text, ")")
                              : str("hosting ", devices.size(), " of ", elastic.replicas,
                                    elastic.replicas == 1 ? " replica" : " replicas");
  const std::string where = place.is_cluster ? " (" + resolver.source() + ")" : ", alone";
  // Worker 0 logs it for all. The lines of the other tasks only help to look for a fault.
  const auto level = place.rank == 0 ? logging::Level::kInfo : logging::Level::kDebug;
  internal::log(level, "Using MultiWorkerMirroredStrategy as ", place.self, ", worker ", place.rank,
                " of ", place.workers.size(), where, ", ", has);
}

// Errors: InvalidArgument (the variable).
int min_workers_of_launcher() {
  const auto text = internal::VariableReader(std::nullopt).find(internal::kElasticWorkersVariable);
  if (!text) return 1;
  if (const auto workers = internal::parse_elastic_workers(*text)) return workers->least;
  throw InvalidArgumentError(str("environment: ", internal::kElasticWorkersVariable,
                                 ": must be the least and the most workers, as 2:4, is ",
                                 internal::quoted(*text)));
}

// Errors: InvalidArgument (the numbers; fewer replicas than workers).
void check_elastic(const ElasticOptions& elastic, size_t workers) {
  if (elastic.replicas == 0) return;
  constexpr int kMost = 1024;
  if (elastic.replicas < 0 || elastic.replicas > kMost) {
    throw InvalidArgumentError(str("ElasticOptions: replicas is ", elastic.replicas,
                                   "; it must be from 1 to ", kMost, ", or 0 for none"));
  }
  if (elastic.threads_per_replica < 1 || elastic.threads_per_replica > kMost) {
    throw InvalidArgumentError(str("ElasticOptions: threads_per_replica is ",
                                   elastic.threads_per_replica, "; it must be from 1 to ", kMost));
  }
  if (elastic.min_workers < 1 || elastic.min_workers > elastic.replicas) {
    throw InvalidArgumentError(str("ElasticOptions: min_workers is ", elastic.min_workers,
                                   "; it must be from 1 to replicas, ", elastic.replicas));
  }
  if (static_cast<size_t>(elastic.replicas) < workers) {
    throw InvalidArgumentError(str("ElasticOptions: ", elastic.replicas, " replicas for ", workers,
                                   " workers; every worker needs one to host"));
  }
}

// The devices of the replicas that this worker hosts.
std::vector<std::string> hosted_devices(const ElasticOptions& elastic, int workers, int rank) {
  const collective::ReplicaRange own =
      collective::SumTree(elastic.replicas).divide(workers)[static_cast<size_t>(rank)];
  const std::string device = config::list_logical_devices("CPU").at(0).name;
  return std::vector<std::string>(static_cast<size_t>(own.size()), device);
}

std::shared_ptr<internal::StrategyCore> make_core(MultiWorkerMirroredStrategyOptions options) {
  options.communication_options.check();
  internal::check_not_negative("MultiWorkerMirroredStrategyOptions: close_timeout",
                               options.close_timeout);
  std::shared_ptr<const cluster_resolver::ClusterResolver> resolver = options.cluster_resolver;
  if (resolver == nullptr) resolver = cluster_resolver::default_cluster_resolver();
  WorkerPlace place = internal::worker_place(*resolver);
  if (place.is_cluster) act_for(place.self, place.rank);
  if (options.elastic.min_workers == 0) options.elastic.min_workers = min_workers_of_launcher();
  check_elastic(options.elastic, place.workers.size());
  const bool is_elastic = options.elastic.replicas > 0;
  std::vector<std::string> devices =
      is_elastic
          ? hosted_devices(options.elastic, static_cast<int>(place.workers.size()), place.rank)
          : local_devices(*resolver);
  log_start(place, devices, *resolver, options.elastic);
  std::optional<GroupConnection> connection;
  if (place.workers.size() > 1 && !is_elastic) {
    connection = connect(options, *resolver, place, devices);
  }
  MultiWorkerStrategy::Options own{
      .resolver = resolver,
      .place = place,
      .devices = std::move(devices),
      .shared_storage = options.shared_storage,
      .threads_per_replica = is_elastic ? options.elastic.threads_per_replica : 0,
      .connection = std::move(connection),
      .communication_options = options.communication_options,
      .close_timeout = options.close_timeout};
  if (place.workers.size() == 1 || !is_elastic) {
    return std::make_shared<MultiWorkerStrategy>(std::move(own));
  }
  own.former = make_former(options, *resolver, place);
  own.is_coming = own.former->is_formed();
  if (own.is_coming) {
    internal::log_info(place.self, " has come to a job that runs already, and joins it where the ",
                       "others save");
    own.devices = hosted_devices(options.elastic, 1, 0);
    return std::make_shared<MultiWorkerStrategy>(std::move(own));
  }
  while (true) {
    own.former->form({.calls = internal::GroupFormer::kComing});
    const ClusterFormer::Group group = own.former->group();
    own.devices =
        hosted_devices(options.elastic, static_cast<int>(group.workers.size()), group.rank);
    try {
      return std::make_shared<MultiWorkerStrategy>(own);
    } catch (const UnavailableError&) {
      if (!own.former->has_lost_a_task()) throw;
    }
  }
}

const MultiWorkerStrategy& core_of(const Strategy& strategy) {
  return static_cast<const MultiWorkerStrategy&>(*strategy.core());
}

MultiWorkerMirroredStrategyOptions options_with(
    std::shared_ptr<const cluster_resolver::ClusterResolver> cluster_resolver,
    const experimental::CommunicationOptions& communication_options) {
  MultiWorkerMirroredStrategyOptions options;
  options.cluster_resolver = std::move(cluster_resolver);
  options.communication_options = communication_options;
  return options;
}

}  // namespace

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(MultiWorkerMirroredStrategyOptions options)
    : Strategy(make_core(std::move(options))) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy()
    : MultiWorkerMirroredStrategy(options_with(nullptr, {})) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(
    std::shared_ptr<const cluster_resolver::ClusterResolver> cluster_resolver,
    experimental::CommunicationOptions communication_options)
    : MultiWorkerMirroredStrategy(
          options_with(std::move(cluster_resolver), communication_options)) {}

const TaskId& MultiWorkerMirroredStrategy::task() const { return core_of(*this).place().self; }
int MultiWorkerMirroredStrategy::worker_id() const { return core_of(*this).place().rank; }
int MultiWorkerMirroredStrategy::num_workers() const { return core_of(*this).num_workers(); }
bool MultiWorkerMirroredStrategy::is_chief() const {
  return core_of(*this).group().view()->task == 0;
}

Server& MultiWorkerMirroredStrategy::server() const {
  Server* const server = core_of(*this).server();
  if (server != nullptr) return *server;
  throw FailedPreconditionError(
      "there are no other workers to talk to, and so no server: the program is alone");
}

Coordination& MultiWorkerMirroredStrategy::coordination() const { return server().coordination(); }

}  // namespace cohort::distribute
