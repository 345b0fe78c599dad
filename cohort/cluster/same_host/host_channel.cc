#include "cohort/cluster/same_host/host_channel.h"

#include <chrono>
#include <mutex>
#include <utility>

#include "cohort/cluster/same_host/caller_connection.h"
#include "cohort/cluster/same_host/handshake.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unix_socket.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kHandshakeTimeout{10};
// The pause before the next attempt: after one that failed, and after the answer that there is no
// short way, or no room for one more, which a peer that is started again at the same address may
// give otherwise.
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::minutes kLongPause{1};

class HostChannel final : public Channel {
 public:
  HostChannel(std::shared_ptr<Channel> channel, std::shared_ptr<const Identity> self,
              const TransportSettings& settings)
      : state_(std::make_shared<State>(std::move(channel), std::move(self), settings)) {}
  ~HostChannel() override { close(); }

  const TaskId& peer() const override { return state_->channel->peer(); }
  const std::string& address() const override { return state_->channel->address(); }
  void retry_now() override { state_->channel->retry_now(); }

  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    if (const auto connection = short_way(options)) {
      try {
        if (connection->start_call(method, request, options, done)) return;
      } catch (...) {  // what cannot be sent
        return done({.error = std::current_exception(), .reply = {}});
      }
      forget(*state_, connection);
    }
    state_->channel->start(method, std::move(request), options, std::move(done));
  }

  CallResult wait_for(std::string_view method, Message request,
                      const CallOptions& options) override {
    if (const auto connection = short_way(options)) {
      try {
        if (auto result = connection->call(method, request, options)) return std::move(*result);
      } catch (...) {  // what cannot be sent
        return {.error = std::current_exception(), .reply = {}};
      }
      forget(*state_, connection);
    }
    return state_->channel->wait_for(method, std::move(request), options);
  }

  void close() override {
    std::shared_ptr<CallerConnection> connection;
    {
      const std::lock_guard lock(state_->mutex);
      state_->closed = true;
      connection = std::exchange(state_->connection, nullptr);
    }
    if (connection) connection->close();
    state_->channel->close();
  }

 private:
  struct State {
    State(std::shared_ptr<Channel> to, std::shared_ptr<const Identity> own,
          const TransportSettings& limits)
        : channel(std::move(to)), self(std::move(own)), settings(limits) {}
    const std::shared_ptr<Channel> channel;
    const std::shared_ptr<const Identity> self;
    const TransportSettings settings;
    std::mutex mutex;  // guards what follows
    std::shared_ptr<CallerConnection> connection;
    bool asking = false;
    steady_clock::time_point next_handshake = {};
    bool closed = false;
  };

  static void ask(const std::shared_ptr<State>& state) {
    state->channel->start(kHandshake, handshake(), {.timeout = kHandshakeTimeout},
                          [state](const CallResult& answer) {
                            std::shared_ptr<CallerConnection> connection;
                            std::chrono::milliseconds pause = kPause;
                            try {
                              if (answer.error) std::rethrow_exception(answer.error);
                              const HandshakeAnswer offer = decode_handshake(answer.reply);
                              if (offer.name.empty()) pause = kLongPause;
                              connection = connect(state, offer);
                            } catch (const std::exception&) {  // calls go on over the channel
                            }
                            arrive(state, std::move(connection), pause);
                          });
  }

  // The connection, if these calls may take it and there is one; if there is none yet, it asks.
  std::shared_ptr<CallerConnection> short_way(const CallOptions& options) const {
    if (!options.same_host) return nullptr;
    std::shared_ptr<CallerConnection> refused;  // ends without the lock
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->connection) {
        if (state_->connection->is_accepted()) return state_->connection;
        if (!state_->connection->has_ended()) return nullptr;
        refused = std::exchange(state_->connection, nullptr);
        state_->next_handshake = steady_clock::now() + kLongPause;
      }
      if (state_->asking || state_->closed || steady_clock::now() < state_->next_handshake) {
        return nullptr;
      }
      state_->asking = true;
    }
    ask(state_);
    return nullptr;
  }

  static std::shared_ptr<CallerConnection> connect(const std::shared_ptr<State>& state,
                                                   const HandshakeAnswer& offer) {
    if (offer.name.empty()) return nullptr;
    UniqueFd socket = unix_socket();
    if (connect_to_name(socket, offer.name) != Connected::kYes) return nullptr;
    if (!is_of_same_user(socket.get())) return nullptr;
    return CallerConnection::start(std::move(socket), offer.ticket,
                                   {.peer = state->channel->peer(),
                                    .address = state->channel->address(),
                                    .self = state->self,
                                    .settings = state->settings,
                                    .each_has_a_core = offer.each_has_a_core});
  }

  static void arrive(const std::shared_ptr<State>& state,
                     std::shared_ptr<CallerConnection> connection,
                     std::chrono::milliseconds pause) {
    {
      const std::lock_guard lock(state->mutex);
      state->asking = false;
      state->next_handshake = steady_clock::now() + pause;
      if (!state->closed) state->connection.swap(connection);
    }
    if (connection) connection->close();  // the channel was closed meanwhile
  }

  // It has ended.
  static void forget(State& state, const std::shared_ptr<CallerConnection>& connection) {
    const std::lock_guard lock(state.mutex);
    if (state.connection != connection) return;
    state.connection = nullptr;
    state.next_handshake = steady_clock::now() + kPause;
  }

  const std::shared_ptr<State> state_;
};

}  // namespace

std::shared_ptr<Channel> prefer_same_host(std::shared_ptr<Channel> channel,
                                          std::shared_ptr<const Identity> self,
                                          const TransportSettings& settings) {
  return std::make_shared<HostChannel>(std::move(channel), std::move(self), settings);
}

}  // namespace cohort::internal::rpc
