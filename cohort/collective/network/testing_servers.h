// For tests: the tasks of a group as servers of one process, with real sockets of loopback between
// them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/communicator.h"
#include "cohort/collective/testing_group.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::collective {

// Workers 0 to size - 1.
class TestingServers {
 public:
  explicit TestingServers(int size) {
    std::vector<internal::UniqueFd> sockets;
    std::vector<std::string> addresses;
    for (int i = 0; i < size; ++i) {
      sockets.push_back(internal::rpc::listen_at("127.0.0.1", 0));
      const int port = internal::rpc::listening_address(sockets.back().get()).port;
      addresses.push_back("127.0.0.1:" + std::to_string(port));
    }
    const train::ClusterSpec spec({{"worker", addresses}});
    for (int i = 0; i < size; ++i) {
      servers_.push_back(std::make_unique<distribute::Server>(
          spec, distribute::ServerOptions{.job_name = "worker",
                                          .task_index = i,
                                          .listen_fd = sockets[static_cast<size_t>(i)].release()}));
    }
  }

  // The coordinating task ends last: the others take their leave of it.
  ~TestingServers() {
    while (!servers_.empty()) servers_.pop_back();
  }

  distribute::Server& operator[](int index) { return *servers_[static_cast<size_t>(index)]; }
  internal::ServerCore& core(int index) { return (*this)[index].core(); }
  // The end of a task's process, as far as the others see it.
  void end(int index) { servers_[static_cast<size_t>(index)].reset(); }

 private:
  std::vector<std::unique_ptr<distribute::Server>> servers_;
};

// Each communicator keeps the servers.
inline std::vector<std::shared_ptr<Communicator>> make_server_group(
    int size, int64_t generation,
    const std::function<std::shared_ptr<Communicator>(const GroupMember&, internal::ServerCore&)>&
        make) {
  struct Task {
    std::shared_ptr<TestingServers> servers;
    std::shared_ptr<Communicator> communicator;
  };
  const auto servers = std::make_shared<TestingServers>(size);
  return make_group(size, generation, [&](const GroupMember& member) {
    const auto task =
        std::make_shared<Task>(Task{servers, make(member, servers->core(member.rank))});
    return std::shared_ptr<Communicator>(task, task->communicator.get());
  });
}

}  // namespace cohort::collective
