// Reports connections that a server refuses: a few lines in the log, and a counter.
#pragma once

#include <string>
#include <string_view>

namespace cohort::internal::rpc {

// The counter's name; its label is the reason.
inline constexpr std::string_view kRefusedConnections = "refused_connections";

struct RefusedConnection {
  std::string_view reason;  // "handshake", "limit", "descriptors", "host": of the counter
  std::string server;       // "127.0.0.1:2222", or empty
  std::string peer = "";    // the same, or what is known instead; empty: nothing
  std::string why;          // for people
};

// Thread safety: any thread.
void note_refused(const RefusedConnection& refused);

}  // namespace cohort::internal::rpc
