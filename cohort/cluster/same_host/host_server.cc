#include "cohort/cluster/same_host/host_server.h"

#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "cohort/cluster/rpc/refused_connections.h"
#include "cohort/core/error.h"
#include "cohort/core/host/random_hex.h"
#include "cohort/core/host/unix_socket.h"

namespace cohort::internal::rpc {
namespace {

std::string check_connection(int connection) {
  return is_of_same_user(connection) ? "" : "it is another user's";
}

}  // namespace

HostServer::HostServer(Dispatcher& dispatcher, const HostServerOptions& options)
    : dispatcher_(dispatcher),
      options_(options),
      name_("cohort-" + random_hex(16)),
      handshakes_(std::make_shared<HandshakeService>(
          HandshakeService::Options{.socket_name = name_, .same_process = options.same_process})),
      socket_(listen_at_name(name_)) {
  dispatcher_.add(handshakes_);
  thread_.start("for callers of this host", "cohort-door", [this] { accept(); });
}

HostServer::~HostServer() { stop(); }

void HostServer::accept() {
  constexpr std::chrono::milliseconds kPause{100};
  pollfd watched[] = {thread_.stop(), {socket_.get(), POLLIN, 0}};
  while (thread_.poll(watched)) {
    if (watched[1].revents == 0) continue;
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.valid()) {  // gone already, or no descriptors: callers go on over gRPC
      thread_.pause(kPause);
      continue;
    }
    try {
      take(std::move(connection));
    } catch (const std::exception& error) {
      note_refused({.reason = "host", .server = "", .peer = "this host", .why = error.what()});
    }
  }
}

void HostServer::take(UniqueFd connection) {
  if (const std::string why = check_connection(connection.get()); !why.empty()) {
    throw PermissionDeniedError(why);
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(connections_, [](const auto& one) { return one->has_ended(); });
  if (connections_.size() >= options_.most_connections) {
    throw ResourceExhaustedError("there are too many");
  }
  connections_.push_back(ServerConnection::start(
      std::move(connection), dispatcher_,
      {.admit = [handshakes =
                     handshakes_](const std::string& ticket) { return handshakes->admit(ticket); },
       .handshake_timeout = options_.settings.handshake_timeout,
       .stall_timeout = longest_silence(options_.settings)}));
}

void HostServer::stop() {
  const std::lock_guard stopping(stopping_);
  thread_.end();
  std::vector<std::shared_ptr<ServerConnection>> connections;
  {
    const std::lock_guard lock(mutex_);
    connections.swap(connections_);
  }
  for (const auto& connection : connections) connection->end("the server stops");
  for (const auto& connection : connections) connection->join();
}

}  // namespace cohort::internal::rpc
