// The server's end of a connection between tasks of one host.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/same_host/handshake.h"
#include "cohort/cluster/same_host/host_socket.h"

namespace cohort::internal::rpc {

// Thread safety: any thread.
class ServerConnection : public std::enable_shared_from_this<ServerConnection> {
 public:
  struct Options {
    // The peer that got the ticket with which the connection begins.
    std::function<std::optional<AdmittedPeer>(const std::string& ticket)> admit = nullptr;
    // How long a connection may take for its handshake.
    std::chrono::milliseconds handshake_timeout{5'000};
    // See HostSocket::Limits.
    std::chrono::milliseconds stall_timeout{20'000};
    // How long a request may take to come whole, however long its caller waits for the answer.
    std::chrono::milliseconds longest_request{600'000};
  };
  // `dispatcher` must live until join(). Errors: those of HostSocket::start.
  static std::shared_ptr<ServerConnection> start(UniqueFd socket, Dispatcher& dispatcher,
                                                 Options options);

  void end(const std::string& why) { socket_->end(why); }
  // After end(): waits until no call comes any more.
  void join() { socket_->join(); }
  bool has_ended() const { return ended_.load(); }

 private:
  ServerConnection(UniqueFd socket, Dispatcher& dispatcher, Options options)
      : dispatcher_(dispatcher),
        options_(std::move(options)),
        socket_(HostSocket::make(std::move(socket),
                                 {.stall = options_.stall_timeout, .receives_when_read = true})) {}
  void on_control(const PieceHead& head, const std::string& bytes);
  void on_bytes(uint64_t call, std::string_view bytes, bool is_last);
  void on_filled(uint64_t call, size_t bytes, bool is_last);
  void on_tick();
  void end_late_requests();
  void on_end();
  void begin(uint64_t call, std::string_view bytes);
  void answer(uint64_t call, MessageWriter writer);
  std::shared_ptr<Session> find(uint64_t call);
  bool all_answered();

  struct Underway {
    std::shared_ptr<Session> session;
    std::chrono::steady_clock::time_point whole_by;  // the request
  };

  Dispatcher& dispatcher_;
  const Options options_;
  const std::shared_ptr<HostSocket> socket_;
  std::atomic<bool> ended_{false};
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Underway> sessions_;

  // Used by the socket's thread.
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<Peer> peer_;
  bool awaits_rest_ = false;  // of a request, at the last tick
};

}  // namespace cohort::internal::rpc
