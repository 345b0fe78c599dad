#include "cohort/distribute/tasks/task_server.h"

#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "cohort/cluster/membership/settings.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/program/process.h"

namespace cohort::internal {
namespace {

using distribute::Server;
using distribute::ServerOptions;
using distribute::cluster_resolver::ClusterResolver;

// A cluster and one of its tasks.
using Place = std::tuple<std::string, TaskId>;

Place place_in_cluster(const ClusterResolver& resolver, const ServerOptions& options) {
  const ServerPlace place = place_of(resolver, options);
  const std::string cluster =
      place.rendezvous ? "rendezvous at " + place.rendezvous->address : place.spec.to_string();
  return {cluster, place.task};
}

// The process's servers.
struct TaskServers {
  const HomeProcess home;
  std::mutex mutex;
  std::map<Place, std::shared_ptr<TaskServer>> servers;  // guarded by mutex
};

TaskServers& task_servers() {
  static auto* const servers = new TaskServers;  // ended by end_task_servers, never destroyed
  return *servers;
}

// The task that coordinates goes last: its end is the end of the cluster.
void end_task_servers() {
  TaskServers& all = task_servers();
  if (!all.home.is_here()) return;  // a child of fork: the servers are its parent's
  std::map<Place, std::shared_ptr<TaskServer>> servers;
  {
    const std::lock_guard lock(all.mutex);
    servers.swap(all.servers);
  }
  for (const bool coordinators : {false, true}) {
    for (const auto& [place, server] : servers) {
      const bool coordinates = server->server().core().membership().service() != nullptr;
      if (coordinates == coordinators) server->server().stop(internal::membership::kEndOfProgram);
    }
  }
}

}  // namespace

std::shared_ptr<TaskServer> TaskServer::find_or_start(const ClusterResolver& resolver,
                                                      const ServerOptions& options) {
  const Place place = place_in_cluster(resolver, options);
  TaskServers& all = task_servers();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<TaskServer>& server = all.servers[place];
  if (server != nullptr && server->server().core().membership().agent().error() == nullptr) {
    return server;
  }
  if (server != nullptr) {  // its port is free from here on, whoever still holds it
    server->server().stop("its membership has ended, and another one begins");
    server.reset();
  }
  try {
    server = std::make_shared<TaskServer>(std::make_unique<Server>(resolver, options));
  } catch (...) {
    all.servers.erase(place);
    throw;
  }
  // After the server, so that what gRPC has made for it is still there at the end.
  static const int registered = std::atexit(end_task_servers);
  if (registered != 0) throw ResourceExhaustedError("no room for another function at exit");
  return server;
}

std::string TaskServer::next_group(int64_t generation) {
  const std::lock_guard lock(mutex_);
  const int number = groups_[generation]++;
  return number == 0 ? "workers" : str("workers-", number + 1);
}

}  // namespace cohort::internal
