#include "cohort/cluster/grpc/grpc_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/cluster/rpc/refused_connections.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/line_limit.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal::rpc {
namespace {

struct Servers {
  std::mutex mutex;
  std::vector<Listener*> listeners;
};

// Never destroyed: gRPC's threads may log while the process ends.
Servers& servers() {
  static auto* const instance = new Servers;
  return *instance;
}

// Whether a message is an error for gRPC, but none here. Another check says whose a certificate is,
// and a connection that is given up during its handshake is given up on purpose.
bool says_nothing(std::string_view message) {
  return message.starts_with("No match found for server name") ||
         message.find("Subchannel disconnected") != std::string_view::npos;
}

// Names those who may have failed: "10.0.0.7:41234", "10.0.0.7:41234 or 10.0.0.8:5123".
std::string text_of(const std::vector<std::string>& peers) {
  constexpr size_t kMostNamed = 3;
  std::string text;
  for (size_t i = 0; i < std::min(peers.size(), kMostNamed); ++i) {
    text += (i > 0 ? " or " : "") + peers[i];
  }
  if (peers.size() > kMostNamed) text += str(" or one of ", peers.size() - kMostNamed, " more");
  return text;
}

// Whether a message says that a server of this process has refused somebody. gRPC logs it before it
// closes the connection. A client's failed handshake is logged alike, but there a call gets the
// error.
bool is_refusal(std::string_view message) {
  const bool is_late = message.find("Handshake timed out") != std::string_view::npos &&
                       message.find("ServerSecurityConnector") != std::string_view::npos;
  if (!is_late && message.find("andshake failed") == std::string_view::npos) return false;
  message = message.substr(0, message.find(" {"));  // where in gRPC, and when
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  for (Listener* const listener : all.listeners) {
    const std::vector<std::string> peers = listener->new_peers().waiting();
    if (peers.empty()) continue;
    note_refused({.reason = "handshake",
                  .server = listener->address(),
                  .peer = text_of(peers),
                  .why = std::string(message)});
    return true;
  }
  if (is_late) note_refused({.reason = "handshake", .server = "", .why = std::string(message)});
  return is_late;
}

void write_line(gpr_log_func_args* line) {
  const std::string_view message = line->message == nullptr ? "" : line->message;
  // Only those who have asked for these messages get them (GRPC_VERBOSITY).
  if (line->severity != GPR_LOG_SEVERITY_ERROR) {
    return log_info("gRPC, ", line->file, ':', line->line, ": ", message);
  }
  if (says_nothing(message)) return log(logging::Level::kDebug, "gRPC: ", message);
  if (is_refusal(message)) return;
  static auto* const lines = new LineLimit("more lines of gRPC");
  lines->say(str("gRPC: ", message));
}

}  // namespace

void take_over_grpc_log() {
  static std::once_flag once;
  std::call_once(once, [] { gpr_set_log_function(write_line); });
}

WatchedHandshakes::WatchedHandshakes(Listener& listener) : listener_(&listener) {
  take_over_grpc_log();
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  all.listeners.push_back(listener_);
}

WatchedHandshakes::~WatchedHandshakes() {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  std::erase(all.listeners, listener_);
}

}  // namespace cohort::internal::rpc
