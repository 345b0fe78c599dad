#include "cohort/collective/network/rpc_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/bulk_memory.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/communicator.h"
#include "cohort/collective/forming_wait.h"
#include "cohort/collective/network/group_exchange.h"
#include "cohort/collective/network/rpc_mailbox.h"
#include "cohort/collective/network/rpc_service.h"
#include "cohort/collective/slow_wait.h"
#include "cohort/core/bytes/fields.h"
#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using internal::str;
namespace rpc = internal::rpc;

// Calls have no time limit of their own: collectives have theirs, and a task that is lost ends its
// calls.
constexpr std::chrono::nanoseconds kNoLimit = std::chrono::hours(24 * 365);
// Below this a copy costs less than to wait until the bytes have arrived.
constexpr size_t kCopyBytes = size_t{64} << 10;
constexpr std::chrono::seconds kLeaveTime{1};

// What tasks tell each other before they are connected: their session of calls. 0, which their task
// will refuse, if nothing is told.
struct SessionTold {
  uint64_t session = 0;
};
void fields(auto& f, SessionTold& told) { f(1, told.session, internal::kFixed); }

class RpcTransport final : public Transport {
 public:
  RpcTransport(const GroupMember& member, internal::ServerCore& server)
      : rank_(member.rank),
        name_(to_string(member.task(member.rank))),
        slow_after_(member.slow_after),
        service_(RpcService::of(server)),
        mailbox_(std::make_shared<RpcMailbox>(member)),
        peers_(member.tasks.size()) {
    service_->add(mailbox_);
    try {
      connect(member, server);
    } catch (...) {
      // The others need not wait.
      mailbox_->fail(given_up(to_string(member.task(rank_)), std::current_exception()));
      service_->remove(*mailbox_);
      throw;
    }
  }

  ~RpcTransport() override {
    try {
      // Messages on their way belong to calls that have returned here, but the other tasks may
      // still need them.
      mailbox_->wait(Clock::now() + kLeaveTime, [&] { return all_answered(); });
    } catch (...) {  // the group has ended with an error
    }
    service_->remove(*mailbox_);
  }

  char* memory(size_t bytes) override {
    const std::shared_ptr<char> block = rpc::bulk_memory(bytes);
    const std::lock_guard lock(memory_mutex_);
    memory_.push_back({.owner = block, .data = block.get(), .size = bytes});
    return block.get();
  }

  void send(int to, const void* data, size_t bytes) override {
    peer(to).unsent.push_back({.data = static_cast<const char*>(data), .size = bytes});
    start_sends(to);
  }

  void expect(int from, void* into, size_t bytes) override {
    peer(from).expected.push_back({into, bytes});
  }

  const void* receive(int from, Deadline deadline) override {
    Peer& sender = peer(from);
    SlowWait slow(slow_after_);
    while (true) {
      start_sends();
      const Deadline until = std::min(deadline, slow.due());
      auto bytes = mailbox_->take(from, until, [&] { return can_start_sends(); });
      if (bytes) return accept(sender, std::move(*bytes), from);
      if (Clock::now() >= deadline) return nullptr;
      if (slow.is_due()) slow.warn("a collective call", name_, sender.name);
    }
  }

  bool is_late(int from) override {
    return !peer(from).expected.empty() && !mailbox_->has_arrived(from);
  }

  int finish(Deadline deadline) override {
    const int slow = wait_for_sends(deadline);
    copied_ = {};  // what was sent may change from here on
    copy_ = {};
    return slow;
  }
  void fail(const std::exception_ptr& error) noexcept override { mailbox_->fail(error); }
  void check() override { mailbox_->check(); }
  void on_end(std::function<void()> ended) override { mailbox_->on_end(std::move(ended)); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Unsent {
    const char* data = nullptr;
    size_t size = 0;
  };
  struct Expected {
    void* into;
    size_t bytes;
  };
  struct Peer {
    std::string name;
    std::shared_ptr<rpc::Channel> channel;
    RpcEnvelope envelope;  // of the next message
    std::deque<Unsent> unsent;
    std::deque<Expected> expected;
    rpc::Bytes received;  // what receive returned last
  };

  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  size_t unsent(int rank) { return peer(rank).unsent.size(); }

  // The first other task of which it is true, or -1.
  template <class Fn>
  int first_that(Fn is_so) {
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank != rank_ && is_so(rank)) return rank;
    }
    return -1;
  }

  bool all_answered() {
    return first_that([&](int rank) { return mailbox_->unanswered(rank) > 0; }) < 0;
  }
  bool can_start_sends() {
    return first_that([&](int rank) { return unsent(rank) > 0 && mailbox_->may_send(rank); }) >= 0;
  }

  int wait_for_sends(Deadline deadline) {
    const auto is_done = [&](int rank) { return unsent(rank) == 0 && mailbox_->lent(rank) == 0; };
    while (true) {
      start_sends();
      int slow = -1;
      mailbox_->wait(deadline, [&] {
        slow = first_that([&](int rank) { return !is_done(rank); });
        return slow < 0 || can_start_sends();
      });
      if (slow < 0 || Clock::now() >= deadline) return slow;
    }
  }

  // A message without bytes from each to each: from then on all are known to be there.
  void connect(const GroupMember& member, internal::ServerCore& server) {
    const std::vector<std::string> sessions =
        exchange_values(member, "rpc", internal::encode_fields(SessionTold{mailbox_->session()}));
    for (int rank = 0; rank < member.size(); ++rank) {
      if (rank == rank_) continue;
      const auto told = internal::decode_fields<SessionTold>(sessions[static_cast<size_t>(rank)],
                                                             "a task's session of calls");
      Peer& other = peer(rank);
      other.name = to_string(member.task(rank));
      other.channel = server.channel(member.task(rank));
      other.envelope = {.group = member.group,
                        .generation = member.generation,
                        .session = told.session,
                        .rank = rank_};
      other.channel->retry_now();
      expect(rank, nullptr, 0);
      send(rank, nullptr, 0);
    }
    FormingWait wait(member);
    std::string late = names([&](int rank) {
      const auto is_there = [&] { return mailbox_->unanswered(rank) == 0; };
      while (!mailbox_->wait(wait.until(), is_there)) {
        if (wait.is_over()) return true;
      }
      watch(rank);
      return false;
    });
    const auto is_silent = [&](int rank) {
      while (!receive(rank, wait.until())) {
        if (wait.is_over()) return true;
      }
      return false;
    };
    late += late.empty() ? names(is_silent) : "";
    if (late.empty()) return;
    throw DeadlineExceededError(str(late, " could not be reached in time to form generation ",
                                    member.generation, " of group '", member.group, "'"));
  }

  template <class Fn>
  std::string names(Fn is_so) {
    std::string text;
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank != rank_ && is_so(rank)) text += (text.empty() ? "" : ", ") + peer(rank).name;
    }
    return text;
  }

  // A call that the other task keeps: it ends with that task, or with its part in the group.
  void watch(int rank) {
    const Peer& other = peer(rank);
    other.channel->start(
        "collective/watch", {.control = other.envelope.encode()}, {.timeout = kNoLimit},
        [mailbox = std::weak_ptr<RpcMailbox>(mailbox_), rank](const rpc::CallResult& result) {
          const auto here = mailbox.lock();
          if (here) result.error ? here->call_failed(rank, result.error) : here->has_left(rank);
        });
  }

  void start_sends() {
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank != rank_) start_sends(rank);
    }
  }

  void start_sends(int to) {
    Peer& receiver = peer(to);
    while (!receiver.unsent.empty()) {
      const Unsent& next = receiver.unsent.front();
      const std::shared_ptr<const void> owner = owner_of(next);
      if (!mailbox_->begin_send(to, owner != nullptr)) return;
      start_send(to, owner ? rpc::Bytes{owner, next.data, next.size} : copy_of(next),
                 owner != nullptr);
      receiver.unsent.pop_front();
    }
  }

  void start_send(int to, rpc::Bytes bytes, bool lent) {
    Peer& receiver = peer(to);
    rpc::Message message{.control = receiver.envelope.encode()};
    if (bytes.size > 0) message.bulk.push_back(std::move(bytes));
    // The first call connects.
    const bool is_first = receiver.envelope.sequence++ == 0;
    receiver.channel->start("collective/put", std::move(message),
                            {.timeout = kNoLimit, .wait_for_peer = is_first},
                            [mailbox = mailbox_, to, lent](const rpc::CallResult& result) {
                              mailbox->end_send(to, lent, result.error);
                            });
  }

  // The owner of the bytes, if they are in this transport's memory.
  std::shared_ptr<const void> owner_of(const Unsent& bytes) {
    if (bytes.size <= kCopyBytes) return nullptr;
    const std::lock_guard lock(memory_mutex_);
    for (const rpc::Bytes& block : memory_) {
      if (bytes.data >= block.data && bytes.data + bytes.size <= block.data + block.size) {
        return block.owner;
      }
    }
    return nullptr;
  }

  rpc::Bytes copy_of(const Unsent& bytes) {
    if (bytes.size == 0) return {};
    // Several tasks often get the same bytes, one after the other.
    if (copied_.data == bytes.data && copied_.size == bytes.size) return copy_;
    const std::shared_ptr<char> copy = rpc::bulk_memory(bytes.size);
    std::memcpy(copy.get(), bytes.data, bytes.size);
    copied_ = bytes;
    copy_ = {.owner = copy, .data = copy.get(), .size = bytes.size};
    return copy_;
  }

  const void* accept(Peer& sender, rpc::Bytes bytes, int from) {
    const Expected expected = sender.expected.front();
    sender.expected.pop_front();
    if (bytes.size != expected.bytes) {
      throw FailedPreconditionError(str(peer(from).name, " sent ", bytes.size, " bytes where ",
                                        expected.bytes,
                                        " were expected: tasks make different collective calls"));
    }
    if (expected.into != nullptr) {
      std::memcpy(expected.into, bytes.data, bytes.size);
      return expected.into;
    }
    sender.received = std::move(bytes);
    return sender.received.size == 0 ? "" : sender.received.data;
  }

  const int rank_;
  const std::string name_;
  const std::chrono::nanoseconds slow_after_;
  const std::shared_ptr<RpcService> service_;
  const std::shared_ptr<RpcMailbox> mailbox_;
  std::vector<Peer> peers_;
  std::mutex memory_mutex_;
  std::vector<rpc::Bytes> memory_;  // guarded by memory_mutex_
  Unsent copied_;                   // of the current call,
  rpc::Bytes copy_;                 // and its copy
};

}  // namespace

std::unique_ptr<Transport> make_rpc_transport(const GroupMember& member,
                                              internal::ServerCore& server) {
  return std::make_unique<RpcTransport>(member, server);
}

}  // namespace cohort::collective
