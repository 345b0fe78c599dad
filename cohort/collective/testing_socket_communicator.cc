#include "cohort/collective/testing_socket_communicator.h"

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string>

#include "cohort/collective/local_buffers.h"
#include "cohort/collective/slices.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::collective {
namespace {

using internal::str;
using Clock = std::chrono::steady_clock;

// Sent before the bytes of a message.
struct Header {
  int64_t length = 0;
  // Of a sender that has given up; why follows.
  Code code = Code::kOk;
};

class SocketCommunicator final : public Communicator {
 public:
  SocketCommunicator(int rank, int size, int64_t generation)
      : rank_(rank), size_(size), generation_(generation), peers_(static_cast<size_t>(size)) {}

  // Task 0 has a socket to each of the others, they have one to it.
  internal::UniqueFd& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int64_t generation() const override { return generation_; }
  Buffer buffer(int64_t bytes) override {
    const std::lock_guard lock(memory_mutex_);
    memory_.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes)));
    return {memory_.back().get(), bytes, uint8};
  }

  std::unique_ptr<Work> all_reduce(std::span<const Buffer> buffers,
                                   const CallOptions& options) override {
    fold_buffers(buffers);
    const Buffer& mine = buffers[0];
    const auto bytes = static_cast<size_t>(mine.bytes());
    const std::string all = exchange({static_cast<const char*>(mine.data), bytes}, options);
    if (all.size() != bytes * static_cast<size_t>(size_)) {
      throw DataLossError(str("'", options.name, "': ", all.size(), " bytes came"));
    }
    std::vector<const void*> sources;
    for (int r = 0; r < size_; ++r) sources.push_back(all.data() + static_cast<size_t>(r) * bytes);
    add_slices(mine.data, sources, mine.count, mine.dtype);
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }
  std::unique_ptr<Work> reduce_scatter(std::span<const Buffer> buffers, std::span<const int64_t>,
                                       const CallOptions& options) override {
    return all_reduce(buffers, options);
  }
  std::unique_ptr<Work> all_gather(std::span<const Buffer> buffers, std::span<const int64_t> counts,
                                   const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    const char* part = mine.at(offset_of(counts, rank_));
    const auto bytes = static_cast<size_t>(mine.at(counts[rank_]) - mine.at(0));
    const std::string all = exchange({part, bytes}, options);
    if (static_cast<int64_t>(all.size()) != mine.bytes()) {
      throw DataLossError(str("'", options.name, "': ", all.size(), " bytes came"));
    }
    std::memcpy(mine.data, all.data(), all.size());
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }
  std::unique_ptr<Work> broadcast(std::span<const Buffer> buffers, int root,
                                  const CallOptions& options) override {
    const Buffer& mine = buffers[0];
    const auto bytes = static_cast<size_t>(rank_ == root ? mine.bytes() : 0);
    const std::string all = exchange({static_cast<const char*>(mine.data), bytes}, options);
    std::memcpy(mine.data, all.data(), static_cast<size_t>(mine.bytes()));
    copy_to_others(buffers, 0, mine.count);
    return done_work();
  }
  void barrier(const CallOptions& options) override { exchange({}, options); }

  void abort(const std::exception_ptr& reason) noexcept override {
    {
      std::lock_guard lock(mutex_);
      if (error_ != nullptr) return;
      error_ = given_up(task_name(rank_), reason);
    }
    const internal::ErrorRecord record = internal::record_error(error_);
    const std::string& text = record.message;
    // Not into the middle of a message that another thread sends; if that one is stuck, they learn
    // that this task is gone, and not why.
    const std::unique_lock whole_message(sending_, std::chrono::milliseconds(500));
    for (internal::UniqueFd& fd : peers_) {
      if (fd.get() < 0) continue;
      if (whole_message.owns_lock()) {
        const Header header{static_cast<int64_t>(text.size()), record.code};
        ::send(fd.get(), &header, sizeof header, MSG_NOSIGNAL | MSG_DONTWAIT);
        ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      }
      ::shutdown(fd.get(), SHUT_RDWR);
    }
  }

 private:
  // Everybody's bytes, in the order of ranks.
  std::string exchange(std::string_view mine, const CallOptions& options) {
    const Deadline deadline = Clock::now() + internal::bounded_wait(options.timeout);
    try {
      check_usable();
      if (rank_ != 0) {
        send(0, mine, options, deadline);
        return receive(0, options, deadline);
      }
      std::string all(mine);
      for (int r = 1; r < size_; ++r) all += receive(r, options, deadline);
      for (int r = 1; r < size_; ++r) send(r, all, options, deadline);
      return all;
    } catch (const Error&) {
      // Whoever waits for this task learns why it does not come.
      abort(std::current_exception());
      throw;
    }
  }

  void check_usable() {
    std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  void send(int to, std::string_view bytes, const CallOptions& options, Deadline deadline) {
    const std::lock_guard whole_message(sending_);
    const Header header{static_cast<int64_t>(bytes.size())};
    move(to, POLLOUT, const_cast<Header*>(&header), sizeof header, options, deadline);
    move(to, POLLOUT, const_cast<char*>(bytes.data()), bytes.size(), options, deadline);
  }

  std::string receive(int from, const CallOptions& options, Deadline deadline) {
    Header header;
    move(from, POLLIN, &header, sizeof header, options, deadline);
    std::string bytes(static_cast<size_t>(header.length), '\0');
    move(from, POLLIN, bytes.data(), bytes.size(), options, deadline);
    if (header.code != Code::kOk) internal::throw_error(header.code, bytes);
    return bytes;
  }

  // Sends or receives all of the bytes.
  void move(int peer_rank, short direction, void* data, size_t size, const CallOptions& options,
            Deadline deadline) {
    const int fd = peer(peer_rank).get();
    auto* bytes = static_cast<char*>(data);
    while (size > 0) {
      pollfd waiting{fd, direction, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      const int ready = left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left.count()));
      if (ready == 0) {
        throw DeadlineExceededError(
            str("waited in '", options.name, "' for ", task_name(peer_rank)));
      }
      if (ready < 0 && errno == EINTR) continue;
      const ssize_t moved = direction == POLLIN
                                ? ::recv(fd, bytes, size, MSG_DONTWAIT)
                                : ::send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (moved < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (moved <= 0) {
        check_usable();
        // A task that has given up said why before it closed.
        if (direction == POLLOUT) receive(peer_rank, options, deadline);
        throw UnavailableError(str(task_name(peer_rank), " was lost in '", options.name, "'"));
      }
      bytes += moved;
      size -= static_cast<size_t>(moved);
    }
  }

  const int rank_;
  const int size_;
  const int64_t generation_;
  std::vector<internal::UniqueFd> peers_;
  std::mutex memory_mutex_;
  std::vector<std::unique_ptr<char[]>> memory_;  // guarded by memory_mutex_
  std::timed_mutex sending_;                     // held while a message is sent
  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_
};

}  // namespace

std::vector<std::shared_ptr<Communicator>> make_socket_communicators(int size, int64_t generation) {
  std::vector<std::shared_ptr<SocketCommunicator>> members;
  for (int r = 0; r < size; ++r) {
    members.push_back(std::make_shared<SocketCommunicator>(r, size, generation));
  }
  for (int r = 1; r < size; ++r) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw ResourceExhaustedError(str("socketpair: ", std::strerror(errno)));
    }
    members[0]->peer(r) = internal::UniqueFd(ends[0]);
    members[static_cast<size_t>(r)]->peer(0) = internal::UniqueFd(ends[1]);
  }
  return {members.begin(), members.end()};
}

}  // namespace cohort::collective
