#include "cohort/cluster/server.h"

#include <utility>

#include "cohort/cluster/server_core.h"
#include "cohort/core/program/process.h"

namespace cohort::distribute {
namespace {

internal::HomePtr<internal::ServerCore> make_core(internal::ServerPlace place,
                                                  const ServerOptions& options) {
  return internal::HomePtr<internal::ServerCore>(
      new internal::ServerCore(std::move(place), options));
}

}  // namespace

Server::Server(const train::ClusterSpec& spec, const ServerOptions& options)
    : core_(make_core(internal::place_of(spec, options), options)) {}
Server::Server(const cluster_resolver::ClusterResolver& resolver, const ServerOptions& options)
    : core_(make_core(internal::place_of(resolver, options), options)) {}
Server::~Server() = default;
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;

std::string Server::target() const { return "grpc://" + address(); }
const std::string& Server::address() const { return core_->address(); }
const TaskId& Server::task() const { return core_->task(); }
train::ClusterSpec Server::cluster_spec() const { return core_->cluster_spec(); }
Coordination& Server::coordination() const { return core_->coordination(); }
int Server::join() { return core_->join(); }
void Server::stop(const std::string& reason) { core_->stop(reason); }

}  // namespace cohort::distribute
