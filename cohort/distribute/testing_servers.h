// For tests: the workers of a cluster as servers of this process, with real sockets between them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/server.h"

namespace cohort::distribute {

class WorkerServers {
 public:
  explicit WorkerServers(int count) {
    std::vector<internal::UniqueFd> sockets;
    std::vector<std::string> addresses;
    for (int i = 0; i < count; ++i) {
      sockets.push_back(internal::rpc::listen_at("127.0.0.1", 0));
      const auto address = internal::rpc::listening_address(sockets.back().get());
      addresses.push_back("127.0.0.1:" + std::to_string(address.port));
    }
    const train::ClusterSpec spec({{"worker", addresses}});
    for (int i = 0; i < count; ++i) {
      tasks_.push_back({"worker", i});
      servers_.push_back(std::make_unique<Server>(
          spec, ServerOptions{.job_name = "worker",
                              .task_index = i,
                              .listen_fd = sockets[static_cast<size_t>(i)].release(),
                              .start_timeout = std::chrono::seconds(20),
                              .heartbeat_interval = std::chrono::milliseconds(500),
                              .heartbeat_timeout = std::chrono::seconds(2)}));
    }
    for (const auto& server : servers_) server->coordination().wait_for_start();
  }

  // The coordinating one last: it waits for the others.
  ~WorkerServers() {
    while (!servers_.empty()) servers_.pop_back();
  }
  WorkerServers(const WorkerServers&) = delete;
  WorkerServers& operator=(const WorkerServers&) = delete;

  Server& server(int task) { return *servers_[static_cast<size_t>(task)]; }
  Coordination& coordination(int task) { return server(task).coordination(); }
  const std::vector<TaskId>& tasks() const { return tasks_; }

 private:
  std::vector<TaskId> tasks_;
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace cohort::distribute
