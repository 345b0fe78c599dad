#include "cohort/cluster/same_host/host_socket.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/host/unix_socket.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/start_thread.h"
#include "cohort/core/text.h"

namespace cohort::internal::rpc {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// Stays in the second-level cache.
constexpr size_t kBufferBytes = size_t{256} << 10;
// Less is as quick through the buffer.
constexpr size_t kLeastInPlace = size_t{32} << 10;
// The thread sends this often, at most, before others may add to the queue, and receives this often
// before it sends.
constexpr int kMostAtOnce = 16;
constexpr size_t kMostSlices = 64;
// A step's values; beyond, caches do not hold them.
constexpr int kSendBufferBytes = 2 << 20;
// Nothing more is received while this much waits to be sent, with Limits::receives_when_read. One
// message may be larger.
constexpr size_t kMuchQueuedMessages = 1024;
constexpr size_t kMuchQueuedBytes = size_t{1} << 30;

constexpr const char* kClosed = "the connection was closed";

bool is_message(PieceKind kind) { return kind == PieceKind::kMessage || kind == PieceKind::kLast; }

}  // namespace

std::shared_ptr<HostSocket> HostSocket::make(UniqueFd socket, const Limits& limits) {
  return std::shared_ptr<HostSocket>(new HostSocket(std::move(socket), limits));
}

HostSocket::HostSocket(UniqueFd socket, const Limits& limits)
    : socket_(std::move(socket)),
      limits_(limits),
      watch_(::epoll_create1(EPOLL_CLOEXEC)),
      buffer_(kBufferBytes) {
  epoll_event nothing{};
  if (!watch_.valid() || ::epoll_ctl(watch_.get(), EPOLL_CTL_ADD, socket_.get(), &nothing) != 0) {
    throw ResourceExhaustedError("no descriptor for a connection");
  }
  // The buffer is as large as the system allows: each time that a message waits for room, both
  // ends' threads switch.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
}

void HostSocket::start(Events events) {
  events_ = std::move(events);
  {
    const std::lock_guard lock(mutex_);
    listen();
  }
  try {
    // The thread keeps this object, which it uses, alive.
    thread_ = start_thread("for a connection", [self = shared_from_this()] { self->run(); });
  } catch (const ResourceExhaustedError&) {
    events_ = {};
    throw;
  }
}

HostSocket::~HostSocket() {
  if (thread_.joinable()) thread_.detach();  // it has ended, or lets go of this just now
}

void HostSocket::join() {
  {
    const std::lock_guard lock(mutex_);
    if (taken_over_by_ == std::this_thread::get_id()) return;
  }
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

void HostSocket::end(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_.exchange(true)) return;
    why_ = why;
  }
  ::shutdown(socket_.get(), SHUT_RDWR);  // which wakes who waits there
}

void HostSocket::send(OutgoingMessage message) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  queued_bytes_ += message.bytes();
  queue_.push_back(std::move(message));
  if (!waits_for_room_) flush();
  update_waiting();
}

bool HostSocket::is_much_queued() const {
  return limits_.receives_when_read && queue_.size() > 1 &&
         (queue_.size() > kMuchQueuedMessages || queued_bytes_ > kMuchQueuedBytes);
}

// For what the thread waits now; the mutex is held.
void HostSocket::update_waiting() {
  const bool waits_for_room = !queue_.empty();
  const bool much_queued = is_much_queued();
  if (waits_for_room == waits_for_room_ && much_queued == much_queued_) return;
  waits_for_room_ = waits_for_room;
  much_queued_ = much_queued;
  listen();
}

// What the thread waits for; the mutex is held.
void HostSocket::listen() {
  epoll_event wanted{};
  if (!taken_over() && !much_queued_) wanted.events |= EPOLLIN;
  if (waits_for_room_) wanted.events |= EPOLLOUT;
  ::epoll_ctl(watch_.get(), EPOLL_CTL_MOD, socket_.get(), &wanted);
}

// Sends what fits; the mutex is held.
void HostSocket::flush() {
  for (int i = 0; i < kMostAtOnce && !queue_.empty(); ++i) {
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
  sent_bytes_ += static_cast<uint64_t>(sent);
  first.advance(static_cast<size_t>(sent));
  if (first.is_done()) {
    queued_bytes_ -= first.bytes();
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
  while (!ended_) {
    epoll_event happened{};
    ::epoll_wait(watch_.get(), &happened, 1, static_cast<int>(kTick.count()));
    if ((happened.events & EPOLLOUT) != 0) send_rest();
    receive_on_thread(happened.events);
  }
  say_end();
}

void HostSocket::send_rest() {
  const std::lock_guard lock(mutex_);
  flush();
  update_waiting();
}

void HostSocket::receive_on_thread(uint32_t happened) {
  {
    std::unique_lock lock(mutex_);
    if (taken_over()) {
      // The receiving thread learns of the end, too, and this one would hear of it again and again.
      if ((happened & EPOLLHUP) != 0) given_back_.wait(lock, [this] { return !taken_over(); });
      return;
    }
    thread_receives_ = true;
  }
  bool came = false;
  for (int i = 0; i < kMostAtOnce && !much_queued_; ++i) {
    if (!receive() && !(came && events_.expects_more() && look())) break;
    came = true;
  }
  // recv() would report the end, but the requests that are still there have nobody to answer to.
  if (much_queued_ && (happened & (EPOLLHUP | EPOLLERR)) != 0) end(kClosed);
  tick_if_due();
  const std::lock_guard lock(mutex_);
  thread_receives_ = false;
}

void HostSocket::say_end() {
  {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return !taken_over(); });
    thread_receives_ = true;  // for ever
  }
  events_.on_end(why_it_ended());
  events_ = {};
}

bool HostSocket::take_over() {
  const std::lock_guard lock(mutex_);
  if (taken_over() || thread_receives_ || ended_) return false;
  taken_over_by_ = std::this_thread::get_id();
  listen();
  return true;
}

void HostSocket::give_back() {
  const std::lock_guard lock(mutex_);
  taken_over_by_ = {};
  listen();
  given_back_.notify_one();
}

void HostSocket::receive_until(FunctionRef<bool()> done) {
  while (!done() && !ended_) {
    if (!receive() && !look()) {
      pollfd watched{socket_.get(), POLLIN, 0};
      ::poll(&watched, 1, static_cast<int>(kTick.count()));
    }
    tick_if_due();
  }
}

// Whether bytes came before it was time to sleep.
bool HostSocket::look() {
  Patience::Look look(patience_);
  while (!ended_ && look.goes_on()) {
    if (!receive()) continue;
    look.found();
    return true;
  }
  return false;
}

void HostSocket::tick_if_due() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_tick_ < kTick || ended_) return;
  last_tick_ = now;
  try {
    events_.on_tick();
    if (!ended_) give_up_if_stalled(now);
  } catch (const std::exception& error) {
    end(error.what());
  }
}

void HostSocket::give_up_if_stalled(std::chrono::steady_clock::time_point now) {
  size_t messages = 0;
  size_t bytes = 0;
  uint64_t sent = 0;
  {
    const std::lock_guard lock(mutex_);
    messages = queue_.size();
    bytes = queued_bytes_;
    sent = sent_bytes_;
  }
  const auto seconds = std::chrono::duration<double>(limits_.stall).count();
  if (sending_.stands_still(messages > 0, sent, now) >= limits_.stall) {
    give_up(str("for ", seconds, " s it has read nothing of the ", messages, " messages, of ",
                bytes, " bytes, that wait for it"));
  }
  const bool awaits_rest = in_piece_ || !head_.empty() || events_.awaits_rest();
  const bool expects_rest = awaits_rest && !much_queued_;
  if (receiving_.stands_still(expects_rest, received_bytes_, now) >= limits_.stall) {
    give_up(str("it has begun a message of which nothing has come for ", seconds, " s"));
  }
}

void HostSocket::give_up(const std::string& why) {
  if (ended_) return;
  log_warning("the connection with process ", process_at_other_end(socket_.get()),
              " of this host is closed: ", why);
  end(why);
}

// Whether bytes came.
bool HostSocket::receive() {
  came_ = false;
  try {
    if (!ended_) receive_some();
  } catch (const std::exception& error) {
    end(error.what());
  }
  return came_;
}

void HostSocket::receive_some() {
  if (receive_in_place()) return;
  // Only the head is read between large pieces, so that the bytes need no copy.
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
  came_ = got > 0;
  if (came_) {
    received_bytes_ += static_cast<uint64_t>(got);
    return true;
  }
  if (got == 0) {
    end(kClosed);
  } else if (errno != EAGAIN && errno != EINTR) {
    end(str("the connection broke: ", errno_text(errno)));
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
