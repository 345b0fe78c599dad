// How a caller learns whether a task is on its host: it asks, by a call over the channel that
// proves who it is, and gets a ticket, with which its connection to the task's unix socket is known
// for it.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

#include "cohort/cluster/rpc/message.h"
#include "cohort/cluster/rpc/service.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

inline constexpr char kHandshake[] = "same_host/handshake";

// The question. Errors: ResourceExhausted.
Message handshake();

struct HandshakeAnswer {
  std::string name;  // of the unix socket; empty: the task is on another host, or in this process
  std::string ticket;
  bool each_has_a_core = false;  // or can have, the caller and the task
};

// A peer that comes with a ticket.
struct AdmittedPeer {
  TaskId task;
  bool each_has_a_core = false;
};
// Errors: DataLoss (the message is no answer to a handshake).
HandshakeAnswer decode_handshake(const Message& answer);

// The service that answers. Thread safety: any thread.
class HandshakeService final : public Service {
 public:
  struct Options {
    std::string socket_name;
    // Whether a caller in the server's own process gets a ticket, too: for tests.
    bool same_process = false;
  };
  explicit HandshakeService(Options options);

  std::string_view name() const override { return "same_host"; }
  std::span<const MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<Call> call) override;

  // The peer that got this ticket, not long ago; a ticket counts once.
  std::optional<AdmittedPeer> admit(const std::string& ticket);

 private:
  struct Ticket {
    std::string text;
    AdmittedPeer peer;
    std::chrono::steady_clock::time_point given;
  };

  const Options options_;
  const std::string identity_;
  std::mutex mutex_;
  std::deque<Ticket> tickets_;  // guarded by mutex_
};

}  // namespace cohort::internal::rpc
