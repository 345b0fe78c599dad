// For tests: every backend, in tasks that are threads of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/forming/hierarchical_communicator.h"
#include "cohort/collective/in_process_communicator.h"
#include "cohort/collective/network/networks.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_group.h"
#include "cohort/collective/testing_socket_communicator.h"

namespace cohort::collective {

using Communicators = std::vector<std::shared_ptr<Communicator>>;

struct Backend {
  std::string name;
  std::function<Communicators(int size, int64_t generation)> make;
  bool is_checked = false;
};

inline Communicators checked_all(Communicators members) {
  for (auto& member : members) member = checked(member);
  return members;
}

// Two tasks on each host.
inline Communicators make_hierarchical_communicators(int size, int64_t generation) {
  HostRanks hosts(static_cast<size_t>((size + 1) / 2));
  for (int rank = 0; rank < size; ++rank) hosts[static_cast<size_t>(rank / 2)].push_back(rank);
  return make_server_group(
      size, generation, [&](const GroupMember& member, internal::ServerCore& server) {
        const auto between = [&](const GroupMember& leaders) {
          return make_transport_communicator(leaders, make_rpc_transport(leaders, server));
        };
        return make_hierarchical_communicator(member, hosts, make_shared_memory_communicator,
                                              between);
      });
}

// Backends that connect processes without the help of another one.
inline std::vector<Backend> process_backends() {
  std::vector<Backend> backends{{"SharedMemory", [](int size, int64_t generation) {
                                   return make_group(size, generation,
                                                     make_shared_memory_communicator);
                                 }}};
  for (const Network& network : networks()) {
    const auto make = [&network](const GroupMember& member, internal::ServerCore& server) {
      return make_transport_communicator(member, network.connect(member, server));
    };
    backends.push_back({network.name, [make](int size, int64_t generation) {
                          return make_server_group(size, generation, make);
                        }});
  }
  return backends;
}

// Backends that some test programs have besides (nccl/nccl_backend_test.cc).
inline std::vector<Backend>& more_backends() {
  static std::vector<Backend> backends;
  return backends;
}

// Every backend.
inline std::vector<Backend> unchecked_backends() {
  std::vector<Backend> backends = process_backends();
  backends.insert(backends.end(), more_backends().begin(), more_backends().end());
  backends.push_back({"InProcess", make_in_process_communicators});
  backends.push_back({"Sockets", make_socket_communicators});
  backends.push_back({"Hierarchy", make_hierarchical_communicators});
  return backends;
}

// Every backend, as it is and in a CheckedCommunicator.
inline std::vector<Backend> all_backends() {
  std::vector<Backend> backends = unchecked_backends();
  for (const Backend& backend : unchecked_backends()) {
    const auto make = [backend](int size, int64_t generation) {
      return checked_all(backend.make(size, generation));
    };
    backends.push_back({backend.name + "Checked", make, true});
  }
  return backends;
}

}  // namespace cohort::collective
