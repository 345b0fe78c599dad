#include "cohort/cluster/same_host/server_connection.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::steady_clock;

constexpr size_t kTimeoutBytes = 8;

}  // namespace

std::shared_ptr<ServerConnection> ServerConnection::start(UniqueFd socket, Dispatcher& dispatcher,
                                                          Options options) {
  const std::shared_ptr<ServerConnection> self(
      new ServerConnection(std::move(socket), dispatcher, std::move(options)));
  // The socket's thread keeps the connection: calls that wait for their answer have nobody else.
  self->socket_->start(
      {.on_control = [self](const PieceHead& head,
                            std::string_view bytes) { self->on_control(head, std::string(bytes)); },
       .on_bytes = [self](uint64_t call, std::string_view bytes,
                          bool is_last) { self->on_bytes(call, bytes, is_last); },
       .room =
           [self](uint64_t call) {
             const auto session = self->peer_ ? self->find(call) : nullptr;
             return session ? session->room() : std::span<char>();
           },
       .on_filled = [self](uint64_t call, size_t bytes,
                           bool is_last) { self->on_filled(call, bytes, is_last); },
       .on_tick = [self] { self->on_tick(); },
       .awaits_rest = [self] { return self->awaits_rest_; },
       .on_end = [self](const std::string&) { self->on_end(); },
       // A caller that gets answers at once may have the next question ready; a call that is not
       // answered needs the core for the thread that works on it.
       .expects_more = [self] { return self->peer_ && self->all_answered(); }});
  return self;
}

void ServerConnection::on_control(const PieceHead& head, const std::string& bytes) {
  if (!peer_) {
    if (head.kind != PieceKind::kHello) throw UnauthenticatedError("a caller without a ticket");
    const std::optional<AdmittedPeer> peer = options_.admit(bytes);
    if (!peer) throw UnauthenticatedError("a caller with a ticket that counts no more");
    peer_ = Peer{
        .address = str("this host (", peer->task, ")"), .task = peer->task, .own_thread = true};
    socket_->patience().allow(peer->each_has_a_core);
    return;
  }
  switch (head.kind) {
    case PieceKind::kRequest:
      return begin(head.call, bytes);
    case PieceKind::kCancel:
      if (const auto session = find(head.call)) {
        session->cancel();
        const std::lock_guard lock(mutex_);
        sessions_.erase(head.call);
      }
      return;
    case PieceKind::kPing:
      return socket_->send(OutgoingMessage(control_piece(PieceKind::kPong, 0)));
    default:
      throw DataLossError("a piece that no caller sends");
  }
}

void ServerConnection::begin(uint64_t call, std::string_view bytes) {
  if (bytes.size() < kTimeoutBytes || find(call)) throw DataLossError("a request that is none");
  uint64_t count = 0;
  for (size_t i = 0; i < kTimeoutBytes; ++i) {
    count |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  constexpr auto kMost = static_cast<uint64_t>(std::chrono::nanoseconds(kLongestWait).count());
  const auto now = steady_clock::now();
  const auto deadline = now + std::chrono::nanoseconds(std::min(count, kMost));
  const auto session = dispatcher_.begin(bytes.substr(kTimeoutBytes), *peer_, deadline,
                                         [weak = weak_from_this(), call](MessageWriter writer) {
                                           if (const auto self = weak.lock())
                                             self->answer(call, std::move(writer));
                                         });
  if (!session->wants_more()) return;  // it has been refused
  const std::lock_guard lock(mutex_);
  sessions_.emplace(call, Underway{session, std::min(deadline, now + options_.longest_request)});
}

void ServerConnection::answer(uint64_t call, MessageWriter writer) {
  std::shared_ptr<Session> answered;  // ends without the lock
  {
    const std::lock_guard lock(mutex_);
    const auto found = sessions_.find(call);
    if (found != sessions_.end()) {
      answered = std::move(found->second.session);
      sessions_.erase(found);
    }
  }
  socket_->send(OutgoingMessage("", call, std::move(writer)));
}

std::shared_ptr<Session> ServerConnection::find(uint64_t call) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(call);
  return found == sessions_.end() ? nullptr : found->second.session;
}

bool ServerConnection::all_answered() {
  const std::lock_guard lock(mutex_);
  return sessions_.empty();
}

// Bytes of a call that was refused are of no interest.
void ServerConnection::on_bytes(uint64_t call, std::string_view bytes, bool is_last) {
  if (!peer_) throw UnauthenticatedError("a caller without a ticket");
  const std::shared_ptr<Session> session = find(call);
  if (!session) return;
  session->append(bytes);
  if (is_last) session->end_of_request();
}

void ServerConnection::on_filled(uint64_t call, size_t bytes, bool is_last) {
  const std::shared_ptr<Session> session = find(call);
  if (!session) return;
  session->filled(bytes);
  if (is_last) session->end_of_request();
}

void ServerConnection::on_tick() {
  if (!peer_ && steady_clock::now() - begun_ > options_.handshake_timeout) {
    throw UnauthenticatedError("a caller that does not say who it is");
  }
  end_late_requests();
}

// A caller gives its calls up itself; this is for one that does not, and for the memory of its
// requests.
void ServerConnection::end_late_requests() {
  const auto now = steady_clock::now();
  std::vector<std::shared_ptr<Session>> late;
  awaits_rest_ = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [call, underway] : sessions_) {
      if (!underway.session->wants_more()) continue;
      if (underway.whole_by > now) {
        awaits_rest_ = true;
      } else {
        late.push_back(underway.session);
      }
    }
  }
  for (const auto& session : late) session->end_late_request();
}

void ServerConnection::on_end() {
  ended_ = true;
  std::unordered_map<uint64_t, Underway> sessions;
  {
    const std::lock_guard lock(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& [call, underway] : sessions) underway.session->cancel();
}

}  // namespace cohort::internal::rpc
