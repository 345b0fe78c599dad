// The caller's side: calls to one task. Implementations: gRPC (over TLS, unix sockets or loopback),
// the channel of tasks of one host, the simulation's.
//
//   channel.call("membership/barrier", {.control = fields}, {.timeout = 5s});
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cohort/cluster/rpc/message.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

struct CallOptions {
  std::chrono::nanoseconds timeout;          // for all of the call; no call is without
  size_t max_reply_bytes = size_t{1} << 20;  // of bulk
  // The call waits, until its timeout, for a peer that cannot be reached (yet) instead of failing
  // at once. It fails all the same if the peer is lost after the call was sent.
  bool wait_for_peer = false;
  // May take the short way to a peer on this host, once there is one (same_host/host_channel.h).
  bool same_host = false;
};

// Errors of a call: those that the service answered with (the same class, text and task);
// DeadlineExceeded, Unavailable (the peer is lost or was never reached; names it and its address),
// Unauthenticated, PermissionDenied, ResourceExhausted (too large), Cancelled (the channel closed).
// Thread safety: any thread.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual const TaskId& peer() const = 0;
  virtual const std::string& address() const = 0;

  // `done` is called once, on any thread, also after close(); it does not block.
  virtual void start(std::string_view method, Message request, const CallOptions& options,
                     std::function<void(CallResult)> done) = 0;
  // Ends calls under way with Cancelled. Later calls fail so too.
  virtual void close() = 0;
  // Connects at once where it would wait before it tries again. Calls that do not wait for the peer
  // fail until that attempt has succeeded.
  virtual void retry_now() {}

  // Waits for the answer, and throws its error.
  Message call(std::string_view method, Message request, const CallOptions& options);
  // The same, with the error in the result.
  virtual CallResult wait_for(std::string_view method, Message request, const CallOptions& options);
};

}  // namespace cohort::internal::rpc
