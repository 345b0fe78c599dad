#include "cohort/cluster/same_host/caller_connection.h"

#include <utility>
#include <vector>

#include "cohort/cluster/rpc/awaited_answer.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::steady_clock;

std::string request_piece(uint64_t call, std::string_view method,
                          std::chrono::nanoseconds timeout) {
  std::string bytes;
  const auto count = static_cast<uint64_t>(timeout.count());
  for (size_t i = 0; i < sizeof count; ++i) bytes += static_cast<char>(count >> (8 * i));
  return control_piece(PieceKind::kRequest, call, bytes.append(method));
}

}  // namespace

std::shared_ptr<CallerConnection> CallerConnection::start(UniqueFd socket,
                                                          const std::string& ticket,
                                                          Options options) {
  const std::shared_ptr<CallerConnection> self(
      new CallerConnection(std::move(socket), std::move(options)));
  // The channel keeps the connection, the connection its socket.
  const std::weak_ptr<CallerConnection> weak = self;
  self->socket_->patience().allow(self->options_.each_has_a_core);
  self->socket_->send(OutgoingMessage(control_piece(PieceKind::kHello, 0, ticket)));
  self->socket_->send(OutgoingMessage(control_piece(PieceKind::kPing, 0)));
  self->socket_->start({.on_control =
                            [weak](const PieceHead&, std::string_view) {
                              if (const auto alive = weak.lock()) alive->on_control();
                            },
                        .on_bytes =
                            [weak](uint64_t call, std::string_view bytes, bool is_last) {
                              if (const auto alive = weak.lock())
                                alive->on_bytes(call, bytes, is_last);
                            },
                        .room =
                            [weak](uint64_t call) {
                              const auto alive = weak.lock();
                              return alive ? alive->room(call) : std::span<char>();
                            },
                        .on_filled =
                            [weak](uint64_t call, size_t bytes, bool is_last) {
                              if (const auto alive = weak.lock())
                                alive->on_filled(call, bytes, is_last);
                            },
                        .on_tick =
                            [weak] {
                              if (const auto alive = weak.lock()) alive->on_tick();
                            },
                        .awaits_rest = [] { return false; },  // the call's deadline
                        .on_end =
                            [weak](const std::string& why) {
                              if (const auto alive = weak.lock()) alive->on_end(why);
                            },
                        .expects_more = [] { return false; }});
  return self;
}

CallerConnection::CallerConnection(UniqueFd socket, Options options)
    : options_(std::move(options)),
      socket_(HostSocket::make(std::move(socket), {.stall = longest_silence(options_.settings)})) {}

CallerConnection::~CallerConnection() { socket_->end("nobody calls any more"); }

bool CallerConnection::start_call(std::string_view method, Message& request,
                                  const CallOptions& options,
                                  std::function<void(CallResult)>& done) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
  }
  MessageWriter writer({.claim = options_.self->claim()}, std::move(request));
  auto call = std::make_unique<Pending>(
      Pending{.method = std::string(method),
              .reader = MessageReader(str("answer of ", method, " from ", options_.peer),
                                      [limit = options.max_reply_bytes](const Header&) {
                                        return MessageReader::Limits{.bulk_bytes = limit};
                                      }),
              .done = std::move(done),
              .timeout = options.timeout,
              .deadline = steady_clock::now() + bounded_wait(options.timeout)});
  std::unique_lock lock(mutex_);
  if (ended_) {
    const CallResult lost = loss(*call, why_);
    lock.unlock();
    call->done(lost);
    return true;
  }
  const uint64_t number = next_call_++;
  calls_.emplace(number, std::move(call));
  lock.unlock();
  socket_->send(
      OutgoingMessage(request_piece(number, method, options.timeout), number, std::move(writer)));
  return true;
}

std::optional<CallResult> CallerConnection::call(std::string_view method, Message& request,
                                                 const CallOptions& options) {
  AwaitedAnswer answer;
  std::function<void(CallResult)> done = [&answer](CallResult result) {
    answer.set(std::move(result));
  };
  {
    HostSocket::Receiver receiver(*socket_);
    if (!start_call(method, request, options, done)) return std::nullopt;
    receiver.until([&answer] { return answer.has_come(); });
  }
  return answer.take();  // from another thread, if it has not come: the connection has ended, say
}

bool CallerConnection::has_ended() {
  const std::lock_guard lock(mutex_);
  return ended_;
}

void CallerConnection::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  socket_->end("the channel was closed");
  socket_->join();
}

CallerConnection::PendingPtr CallerConnection::take(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(number);
  if (found == calls_.end()) return nullptr;
  PendingPtr call = std::move(found->second);
  calls_.erase(found);
  return call;
}

CallResult CallerConnection::failure(const Pending& call, Code code,
                                     const std::string& text) const {
  return {
      .error = make_error(code, text, "",
                          {.peer = to_string(options_.peer),
                           .rpc = call.method,
                           .cause = code == Code::kCancelled ? Cause::kClosed : Cause::kNoAnswer}),
      .reply = {}};
}

CallResult CallerConnection::loss(const Pending& call, const std::string& why) const {
  if (closed_) {
    return failure(call, Code::kCancelled,
                   str(call.method, ": the channel to ", whom(), " was closed"));
  }
  return failure(call, Code::kUnavailable,
                 str("cannot reach ", whom(), " for ", call.method, ": ", why));
}

// A server sends nothing but pongs outside of answers.
void CallerConnection::on_control() {
  accepted_ = true;
  heard_ = steady_clock::now();
  pinged_ = {};
}

void CallerConnection::on_bytes(uint64_t number, std::string_view bytes, bool is_last) {
  receive(number, is_last, [&](MessageReader& reader) { reader.append(bytes); });
}

void CallerConnection::on_filled(uint64_t number, size_t bytes, bool is_last) {
  receive(number, is_last, [&](MessageReader& reader) { reader.filled(bytes); });
}

// Only the thread that receives takes calls away that are under way.
CallerConnection::Pending* CallerConnection::find(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = calls_.find(number);
  return found == calls_.end() ? nullptr : found->second.get();
}

std::span<char> CallerConnection::room(uint64_t number) {
  Pending* const call = find(number);
  return call == nullptr ? std::span<char>() : call->reader.room();
}

template <class Receive>
void CallerConnection::receive(uint64_t number, bool is_last, const Receive& receive) {
  heard_ = steady_clock::now();
  pinged_ = {};
  Pending* const call = find(number);
  if (call == nullptr) return;  // nobody waits any more
  try {
    receive(call->reader);
    if (!is_last) return;
    call->reader.expect_complete();
    if (!call->reader.header().error.empty()) {
      std::rethrow_exception(decode_error(call->reader.header().error));
    }
  } catch (...) {
    take(number)->done({.error = std::current_exception(), .reply = {}});
    return;
  }
  const PendingPtr answered = take(number);
  answered->done({.error = nullptr, .reply = answered->reader.take()});
}

void CallerConnection::on_tick() {
  const Time now = steady_clock::now();
  if (!accepted_ && now - begun_ > options_.settings.handshake_timeout) {
    socket_->end(str("not let in within ", options_.settings.handshake_timeout.count(), " ms"));
  }
  std::vector<std::pair<uint64_t, PendingPtr>> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto call = calls_.begin(); call != calls_.end();) {
      if (call->second->deadline > now) {
        ++call;
        continue;
      }
      late.emplace_back(call->first, std::move(call->second));
      call = calls_.erase(call);
    }
  }
  for (auto& [number, call] : late) {
    socket_->send(OutgoingMessage(control_piece(PieceKind::kCancel, number)));
    call->done(failure(*call, Code::kDeadlineExceeded,
                       str(whom(), " did not answer ", call->method, " within ",
                           std::chrono::duration<double>(call->timeout).count(), " s")));
  }
  watch_peer(now);
}

// A process that is stopped keeps its connections.
void CallerConnection::watch_peer(Time now) {
  {
    const std::lock_guard lock(mutex_);
    if (calls_.empty()) {
      heard_ = now;  // nothing is asked of it
      pinged_ = {};
      return;
    }
  }
  const TransportSettings& settings = options_.settings;
  if (pinged_ != Time()) {
    if (now - pinged_ > settings.keepalive_timeout) {
      socket_->end(
          str("no sign of life for ", std::chrono::duration<double>(now - heard_).count(), " s"));
    }
  } else if (now - heard_ > settings.keepalive_time) {
    pinged_ = now;
    socket_->send(OutgoingMessage(control_piece(PieceKind::kPing, 0)));
  }
}

void CallerConnection::on_end(const std::string& why) {
  std::vector<std::pair<PendingPtr, CallResult>> lost;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    why_ = why;
    for (auto& [number, call] : calls_) {
      CallResult result = loss(*call, why);
      lost.emplace_back(std::move(call), std::move(result));
    }
    calls_.clear();
  }
  for (auto& [call, result] : lost) call->done(std::move(result));
}

}  // namespace cohort::internal::rpc
