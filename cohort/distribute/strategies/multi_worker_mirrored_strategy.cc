#include "cohort/distribute/strategies/multi_worker_mirrored_strategy.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/resolvers/default_cluster_resolver.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/forming/form_group.h"
#include "cohort/collective/sum_tree.h"
#include "cohort/core/cpu/numeric_environment.h"
#include "cohort/core/durations.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/task.h"
#include "cohort/core/structure/device.h"
#include "cohort/core/threads/bounded_wait.h"
#include "cohort/distribute/strategies/multi_worker_strategy.h"
#include "cohort/train/summary/recording.h"

namespace cohort::distribute {
namespace {

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

// The workers compute the same updates from the same sums, each for itself: they must round alike.
void compare_numerics(internal::membership::MembershipAgent& agent, const std::string& group,
                      const MultiWorkerMirroredStrategyOptions& options) {
  const ElasticOptions& elastic = options.elastic;
  const std::vector<std::string> warnings =
      agent.declare({{.name = "numeric environment",
                      .text = internal::numeric_environment(),
                      .strict = options.strict_bitwise},
                     {.name = str("elastic replicas of ", group),
                      .text = elastic.replicas == 0 ? std::string("none")
                                                    : str(elastic.replicas, " with ",
                                                          elastic.threads_per_replica, " threads"),
                      .strict = true}});
  for (const std::string& warning : warnings) {
    internal::log_warning("the workers' variables may drift apart in their last bits: ", warning);
  }
}

GroupConnection connect(const MultiWorkerMirroredStrategyOptions& options,
                        const cluster_resolver::ClusterResolver& resolver, const WorkerPlace& place,
                        const std::vector<std::string>& devices) {
  GroupConnection connection;
  connection.server = TaskServer::find_or_start(resolver, options.server_options);
  internal::ServerCore& core = connection.server->server().core();
  internal::membership::MembershipAgent& agent = core.membership().agent();
  const auto timeout = internal::bounded_wait(options.server_options.start_timeout);
  agent.wait_for_start();
  const internal::membership::ViewPtr view = agent.wait_for_group(1, timeout);
  const std::string group = connection.server->next_group(view->generation);
  compare_numerics(agent, group, options);

  connection.watch = std::make_shared<GroupWatch>(place.workers, place.self, *view);
  core.membership().listen(connection.watch);
  if (const auto now = agent.view(); now != nullptr && now != view) connection.watch->on_view(*now);
  connection.keys =
      std::make_shared<collective::OwnKeys>(collective::make_cluster_store(core.coordination()));
  const c10::Device first = internal::torch_device(devices.at(0));
  const collective::GroupMember member{.group = group,
                                       .generation = view->generation,
                                       .rank = place.rank,
                                       .tasks = place.workers,
                                       .store = connection.keys,
                                       .deadline = std::chrono::steady_clock::now() + timeout,
                                       .check = [watch = connection.watch] { watch->check(); },
                                       .gpu = first.is_cpu() ? std::nullopt : std::optional(first)};
  try {
    collective::FormedGroup formed =
        collective::form_group(member, core, options.communication_options);
    connection.communicator = std::move(formed.communicator);
    connection.cores = formed.cores;
  } catch (const UnavailableError&) {
    if (const std::exception_ptr loss = connection.watch->loss(std::chrono::milliseconds(500))) {
      std::rethrow_exception(loss);
    }
    throw;
  }
  connection.watch->guard(connection.communicator);
  return connection;
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
  if (static_cast<size_t>(elastic.replicas) < workers) {
    throw InvalidArgumentError(str("ElasticOptions: ", elastic.replicas, " replicas for ", workers,
                                   " workers; every worker needs one to host"));
  }
}

// The devices of the replicas that this worker hosts.
std::vector<std::string> hosted_devices(const ElasticOptions& elastic, const WorkerPlace& place) {
  const collective::ReplicaRange own =
      collective::SumTree(elastic.replicas)
          .divide(static_cast<int>(place.workers.size()))[static_cast<size_t>(place.rank)];
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
  check_elastic(options.elastic, place.workers.size());
  const bool is_elastic = options.elastic.replicas > 0;
  std::vector<std::string> devices =
      is_elastic ? hosted_devices(options.elastic, place) : local_devices(*resolver);
  log_start(place, devices, *resolver, options.elastic);
  std::optional<GroupConnection> connection;
  if (place.workers.size() > 1) connection = connect(options, *resolver, place, devices);
  return std::make_shared<MultiWorkerStrategy>(MultiWorkerStrategy::Options{
      .resolver = std::move(resolver),
      .place = std::move(place),
      .devices = std::move(devices),
      .shared_storage = options.shared_storage,
      .threads_per_replica = is_elastic ? options.elastic.threads_per_replica : 0,
      .connection = std::move(connection),
      .communication_options = options.communication_options,
      .close_timeout = options.close_timeout});
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
int MultiWorkerMirroredStrategy::num_workers() const {
  return static_cast<int>(core_of(*this).place().workers.size());
}
bool MultiWorkerMirroredStrategy::is_chief() const { return worker_id() == 0; }

Server& MultiWorkerMirroredStrategy::server() const {
  Server* const server = core_of(*this).server();
  if (server != nullptr) return *server;
  throw FailedPreconditionError(
      "there are no other workers to talk to, and so no server: the program is alone");
}

Coordination& MultiWorkerMirroredStrategy::coordination() const { return server().coordination(); }

}  // namespace cohort::distribute
