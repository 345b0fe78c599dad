// The caller's end of a connection between tasks of one host.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/same_host/host_socket.h"

namespace cohort::internal::rpc {

// Thread safety: any thread.
class CallerConnection : public std::enable_shared_from_this<CallerConnection> {
 public:
  struct Options {
    TaskId peer;
    std::string address;  // of the peer, for texts
    std::shared_ptr<const Identity> self;
    TransportSettings settings;
    bool each_has_a_core = false;  // see Patience
  };
  // Begins with `ticket`, and asks for a sign of life. Errors: those of HostSocket::start.
  static std::shared_ptr<CallerConnection> start(UniqueFd socket, const std::string& ticket,
                                                 Options options);
  ~CallerConnection();

  // Whether the server has let it in: connect() succeeds, too, where nobody accepts, or the server
  // has no room. One that is not let in within settings.handshake_timeout ends.
  bool is_accepted() const { return accepted_.load(); }
  bool has_ended();

  // Starts a call, as Channel::start; false, with the request untouched, once the connection has
  // ended.
  bool start_call(std::string_view method, Message& request, const CallOptions& options,
                  std::function<void(CallResult)>& done);
  // The same, and waits for the answer; the calling thread receives it itself where no other does.
  // Nothing, with the request untouched, once the connection has ended.
  std::optional<CallResult> call(std::string_view method, Message& request,
                                 const CallOptions& options);
  // Ends calls under way with Cancelled.
  void close();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Pending {
    std::string method;
    MessageReader reader;
    std::function<void(CallResult)> done;
    std::chrono::nanoseconds timeout;
    Time deadline;
  };
  using PendingPtr = std::unique_ptr<Pending>;

  CallerConnection(UniqueFd socket, Options options);
  std::string whom() const { return str(options_.peer, " at ", options_.address); }
  void on_control();
  void on_bytes(uint64_t call, std::string_view bytes, bool is_last);
  std::span<char> room(uint64_t call);
  void on_filled(uint64_t call, size_t bytes, bool is_last);
  template <class Receive>
  void receive(uint64_t call, bool is_last, const Receive& receive);
  void on_tick();
  void on_end(const std::string& why);
  void watch_peer(Time now);
  Pending* find(uint64_t call);
  // No longer under way, if it was.
  PendingPtr take(uint64_t call);
  CallResult failure(const Pending& call, Code code, const std::string& text) const;
  // The result of a call that was under way when the connection ended.
  CallResult loss(const Pending& call, const std::string& why) const;

  const Options options_;
  const std::shared_ptr<HostSocket> socket_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, PendingPtr> calls_;
  uint64_t next_call_ = 1;
  bool ended_ = false;
  bool closed_ = false;
  std::string why_;  // it has ended

  std::atomic<bool> accepted_{false};
  const Time begun_ = std::chrono::steady_clock::now();
  // Used by the thread that receives.
  Time heard_ = begun_;
  Time pinged_ = {};  // none since the peer was heard
};

}  // namespace cohort::internal::rpc
