#include "collective_place.h"

#include <fcntl.h>
#include <sched.h>

#include <chrono>
#include <system_error>

#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/server.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_directory_store.h"
#include "cohort/core/host/unique_fd.h"
#include "network_group.h"

namespace bench {
namespace {

using cohort::TaskId;
using cohort::collective::Communicator;
using cohort::distribute::Server;

// Of each backend's servers: groups of several backends run on the same hosts.
int port_of(const std::string& backend) {
  constexpr int kFirst = 2222;
  return backend == "gloo" ? kFirst : backend == "calls" ? kFirst + 1 : kFirst + 2;
}

TaskId task_of(int rank) { return {"worker", rank}; }

std::string certificates_of(const Place& place) { return place.directory + "/certificates"; }

Server make_server(const Place& place) {
  std::vector<std::string> addresses;
  for (int rank = 0; rank < place.size; ++rank) {
    addresses.push_back("10.78.0." + std::to_string(rank + 1) + ":" +
                        std::to_string(port_of(place.backend)));
  }
  cohort::distribute::ServerOptions options;
  options.job_name = "worker";
  options.task_index = place.rank;
  if (place.backend == "tls") {
    options.credentials =
        cohort::internal::security::credentials_in(certificates_of(place), task_of(place.rank));
  } else {
    options.credentials.insecure = true;
  }
  return Server(cohort::train::ClusterSpec({{"worker", addresses}}), options);
}

// Ends the communicator first.
struct OverNetwork {
  explicit OverNetwork(const Place& place) : server(make_server(place)) {
    const auto member = member_in(server);
    communicator = cohort::collective::make_transport_communicator(
        member, connect_transport(place.backend, member, server));
  }

  Server server;
  std::shared_ptr<Communicator> communicator;
};

std::shared_ptr<Communicator> connect_in_memory(const Place& place) {
  cohort::collective::GroupMember member{
      .rank = place.rank,
      .store = std::make_shared<cohort::collective::DirectoryStore>(place.directory),
      .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60)};
  for (int rank = 0; rank < place.size; ++rank) member.tasks.push_back(task_of(rank));
  return cohort::collective::make_shared_memory_communicator(member);
}

}  // namespace

void enter(const Place& place) {
  if (place.rank == 0 && place.backend == "tls") {
    cohort::internal::security::CertificateRequest request;
    request.cluster = "bench";
    for (int rank = 0; rank < place.size; ++rank) request.tasks.push_back(task_of(rank));
    request.directory = certificates_of(place);
    cohort::internal::security::make_certificates(request);
  }
  if (place.hosts.empty()) return;
  const std::string path = "/run/netns/" + place.hosts.at(static_cast<size_t>(place.rank));
  const cohort::internal::UniqueFd host(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!host.valid() || ::setns(host.get(), CLONE_NEWNET) != 0) {
    throw std::system_error(errno, std::generic_category(), "network namespace " + path);
  }
}

std::shared_ptr<Communicator> connect(const Place& place) {
  if (place.backend == "memory") return connect_in_memory(place);
  const auto connected = std::make_shared<OverNetwork>(place);
  return {connected, connected->communicator.get()};
}

}  // namespace bench
