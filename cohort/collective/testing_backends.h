// For tests: every backend, in tasks that are threads of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/forming/hierarchical_communicator.h"
#include "cohort/collective/in_process_communicator.h"
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_group.h"
#include "cohort/collective/testing_socket_communicator.h"

namespace cohort::collective {

using Communicators = std::vector<std::shared_ptr<Communicator>>;

struct Backend {
  const char* name;
  Communicators (*make)(int size, int64_t generation);
  bool is_checked;
};

inline Communicators checked_all(Communicators members) {
  for (auto& member : members) member = checked(member);
  return members;
}

inline Communicators make_shared_memory_group(int size, int64_t generation) {
  return make_group(size, generation, make_shared_memory_communicator);
}

inline Communicators make_rpc_communicators(int size, int64_t generation) {
  return make_server_group(
      size, generation, [](const GroupMember& member, internal::ServerCore& server) {
        return make_transport_communicator(member, make_rpc_transport(member, server));
      });
}

inline Communicators make_gloo_communicators(int size, int64_t generation) {
  return make_server_group(
      size, generation, [](const GroupMember& member, internal::ServerCore& server) {
        return make_transport_communicator(
            member, make_gloo_transport(member, "127.0.0.1", make_rpc_transport(member, server)));
      });
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

inline const Backend kBackends[] = {
    {"InProcess", make_in_process_communicators, false},
    {"InProcessChecked",
     [](int size, int64_t generation) {
       return checked_all(make_in_process_communicators(size, generation));
     },
     true},
    {"Sockets", make_socket_communicators, false},
    {"SocketsChecked",
     [](int size, int64_t generation) {
       return checked_all(make_socket_communicators(size, generation));
     },
     true},
    {"SharedMemory", make_shared_memory_group, false},
    {"SharedMemoryChecked",
     [](int size, int64_t generation) {
       return checked_all(make_shared_memory_group(size, generation));
     },
     true},
    {"Rpc", make_rpc_communicators, false},
    {"Gloo", make_gloo_communicators, false},
    {"GlooChecked",
     [](int size, int64_t generation) {
       return checked_all(make_gloo_communicators(size, generation));
     },
     true},
    {"Hierarchy", make_hierarchical_communicators, false},
    {"HierarchyChecked",
     [](int size, int64_t generation) {
       return checked_all(make_hierarchical_communicators(size, generation));
     },
     true},
    {"RpcChecked",
     [](int size, int64_t generation) {
       return checked_all(make_rpc_communicators(size, generation));
     },
     true},
};

}  // namespace cohort::collective
