// The server of this process's task of a cluster. All strategies of the process share it, and it
// lives until the process ends, so that strategies can be made one after another.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "cohort/cluster/server.h"

namespace cohort::internal {

// Thread safety: any thread.
class TaskServer {
 public:
  // Finds the server that this process has already for the resolver's cluster and task, or starts
  // one. A server whose membership has ended gives way to a new one.
  // Errors: those of Server's constructor.
  static std::shared_ptr<TaskServer> find_or_start(
      const distribute::cluster_resolver::ClusterResolver& resolver,
      const distribute::ServerOptions& options);

  explicit TaskServer(std::unique_ptr<distribute::Server> server) : server_(std::move(server)) {}

  distribute::Server& server() { return *server_; }
  // A new name for each group that a task forms in one generation. Tasks that make the same
  // strategies in the same order get the same names.
  std::string next_group(int64_t generation);

 private:
  const std::unique_ptr<distribute::Server> server_;
  std::mutex mutex_;
  std::map<int64_t, int> groups_;  // how many there are, by generation; guarded by mutex_
};

}  // namespace cohort::internal
