#include "cohort/cluster/same_host/host_socket.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "cohort/core/error.h"

namespace cohort::internal::rpc {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// Stays in the second-level cache.
constexpr size_t kBufferBytes = size_t{256} << 10;
// Less is as quick through the buffer.
constexpr size_t kLeastInPlace = size_t{32} << 10;
// What the thread sends, at most, before others may add to the queue.
constexpr int kMostSendsAtOnce = 16;
constexpr size_t kMostSlices = 64;
// A step's values; beyond, caches do not hold them.
constexpr int kSendBufferBytes = 2 << 20;

bool is_message(PieceKind kind) { return kind == PieceKind::kMessage || kind == PieceKind::kLast; }

}  // namespace

std::shared_ptr<HostSocket> HostSocket::make(UniqueFd socket) {
  return std::shared_ptr<HostSocket>(new HostSocket(std::move(socket)));
}

HostSocket::HostSocket(UniqueFd socket)
    : socket_(std::move(socket)),
      wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      buffer_(kBufferBytes) {
  if (!wake_event_.valid()) throw ResourceExhaustedError("no descriptor for a connection");
  // As much as the system allows: each time that a message waits for room, both ends' threads switch.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
}

void HostSocket::start(Events events) {
  events_ = std::move(events);
  try {
    // The thread keeps what it uses.
    thread_ = std::thread([self = shared_from_this()] { self->run(); });
  } catch (const std::system_error&) {
    events_ = {};
    throw ResourceExhaustedError("no thread for a connection");
  }
}

HostSocket::~HostSocket() {
  if (thread_.joinable()) thread_.detach();  // it has ended, or lets go of this just now
}

void HostSocket::join() {
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void HostSocket::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_event_.get(), &one, sizeof one);
}

void HostSocket::end(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    why_ = why;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);
  wake();
}

void HostSocket::send(OutgoingMessage message) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  queue_.push_back(std::move(message));
  if (waits_for_room_) return;
  flush();
  if (queue_.empty()) return;
  waits_for_room_ = true;
  lock.unlock();
  wake();
}

// Sends what fits; the mutex is held.
void HostSocket::flush() {
  for (int i = 0; i < kMostSendsAtOnce && !queue_.empty(); ++i) {
    if (!send_some()) return;
  }
}

// Whether something left.
bool HostSocket::send_some() {
  OutgoingMessage& first = queue_.front();
  std::array<iovec, kMostSlices> slices{};
  msghdr header{};
  header.msg_iov = slices.data();
  header.msg_iovlen = first.slices(slices);
  const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) return errno == EINTR;  // a broken connection shows when the thread reads
  first.advance(static_cast<size_t>(sent));
  if (first.is_done()) {
    queue_.pop_front();
  } else if (first.is_between_pieces() && queue_.size() > 1) {
    queue_.push_back(std::move(first));
    queue_.pop_front();
  }
  return true;
}

std::string HostSocket::why_it_ended() {
  const std::lock_guard lock(mutex_);
  return why_;
}

void HostSocket::run() {
  ::pthread_setname_np(::pthread_self(), "cohort-host");
  auto last_tick = std::chrono::steady_clock::now();
  while (true) {
    pollfd watched[] = {{socket_.get(), POLLIN, 0}, {wake_event_.get(), POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      if (ended_) break;
      if (waits_for_room_) watched[0].events |= POLLOUT;
    }
    ::poll(watched, std::size(watched), static_cast<int>(kTick.count()));
    if (watched[1].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_event_.get(), &count, sizeof count);
    }
    if ((watched[0].revents & POLLOUT) != 0) {
      const std::lock_guard lock(mutex_);
      flush();
      waits_for_room_ = !queue_.empty();
    }
    try {
      if ((watched[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive();
      const auto now = std::chrono::steady_clock::now();
      if (now - last_tick >= kTick) {
        last_tick = now;
        events_.on_tick();
      }
    } catch (const std::exception& error) {
      end(error.what());
    }
  }
  events_.on_end(why_it_ended());
  events_ = {};
}

void HostSocket::receive() {
  if (receive_in_place()) return;
  // Between large pieces the head alone, so that the bytes need no copy.
  const bool after_large = !in_piece_ && head_.empty() && piece_.kind == PieceKind::kMessage;
  const ssize_t got = ::recv(socket_.get(), buffer_.data(),
                             after_large ? kPieceHeadBytes : buffer_.size(), MSG_DONTWAIT);
  if (check_received(got)) take({buffer_.data(), static_cast<size_t>(got)});
}

bool HostSocket::receive_in_place() {
  if (!in_piece_ || !is_message(piece_.kind) || left_ < kLeastInPlace) return false;
  const std::span<char> room = events_.room(piece_.call);
  if (room.size() < kLeastInPlace) return false;
  const ssize_t got =
      ::recv(socket_.get(), room.data(), std::min(room.size(), left_), MSG_DONTWAIT);
  if (!check_received(got)) return true;
  left_ -= static_cast<size_t>(got);
  in_piece_ = left_ > 0;
  events_.on_filled(piece_.call, static_cast<size_t>(got),
                    !in_piece_ && piece_.kind == PieceKind::kLast);
  return true;
}

bool HostSocket::check_received(ssize_t got) {
  if (got > 0) return true;
  if (got == 0) {
    end("the connection was closed");
  } else if (errno != EAGAIN && errno != EINTR) {
    end(str("the connection broke: ", std::strerror(errno)));
  }
  return false;
}

void HostSocket::take(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!in_piece_) {
      const size_t size = std::min(bytes.size(), kPieceHeadBytes - head_.size());
      head_.append(bytes.substr(0, size));
      bytes.remove_prefix(size);
      if (head_.size() < kPieceHeadBytes) return;
      begin_piece();
    }
    const std::string_view own = bytes.substr(0, left_);
    bytes.remove_prefix(own.size());
    left_ -= own.size();
    in_piece_ = left_ > 0;
    if (is_message(piece_.kind)) {
      events_.on_bytes(piece_.call, own, !in_piece_ && piece_.kind == PieceKind::kLast);
    } else {
      control_.append(own);
      if (!in_piece_) events_.on_control(piece_, control_);
    }
  }
}

void HostSocket::begin_piece() {
  piece_ = decode_piece_head(head_);
  head_.clear();
  control_.clear();
  const size_t most = is_message(piece_.kind) ? kMaxPieceBytes : kMostControlPieceBytes;
  if (piece_.kind < PieceKind::kHello || piece_.kind > PieceKind::kPong || piece_.size > most) {
    throw DataLossError(str("a piece of kind ", static_cast<int>(piece_.kind), " with ",
                            piece_.size, " bytes came"));
  }
  left_ = piece_.size;
  in_piece_ = true;
}

}  // namespace cohort::internal::rpc
