#include "cohort/collective/network/rpc_mailbox.h"

#include <random>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using internal::str;
namespace rpc = internal::rpc;

// A sender that keeps to its window is never this far ahead.
constexpr uint64_t kMostAhead = RpcMailbox::kWindow + RpcMailbox::kMostAnswered;

uint64_t new_session() {
  std::random_device device;
  const uint64_t high = device();
  return high << 32 | device();
}

std::exception_ptr lost_error(const TaskId& task, const std::string& how, int64_t generation) {
  return rpc::make_error(
      Code::kUnavailable, str(task, " was lost: ", how), "",
      {.peer = to_string(task), .generation = generation, .phase = "collective"});
}

}  // namespace

RpcMailbox::RpcMailbox(const GroupMember& member)
    : group_(member.group),
      generation_(member.generation),
      rank_(member.rank),
      tasks_(member.tasks),
      session_(new_session()),
      peers_(member.tasks.size()) {}

RpcMailbox::Peer& RpcMailbox::admit(const RpcEnvelope& envelope, const rpc::Caller& caller) {
  if (error_) std::rethrow_exception(error_);
  const auto size = static_cast<int>(tasks_.size());
  if (envelope.rank >= size || envelope.rank == rank_ ||
      tasks_[static_cast<size_t>(envelope.rank)] != caller.task) {
    throw PermissionDeniedError(str(caller.task, " cannot speak for rank ", envelope.rank,
                                    " of group '", group_, "' at rank ", rank_, " of ", size));
  }
  Peer& sender = peer(envelope.rank);
  if (sender.incarnation == 0) sender.incarnation = caller.incarnation;
  if (envelope.session != session_ || sender.incarnation != caller.incarnation) {
    throw FailedPreconditionError(str(caller.task, " speaks to another session of group '", group_,
                                      "', generation ", generation_,
                                      ": one of the two has started again; form the group again"));
  }
  return sender;
}

void RpcMailbox::put(const RpcEnvelope& envelope, std::unique_ptr<rpc::Call> call) {
  {
    const std::lock_guard lock(mutex_);
    Peer& sender = admit(envelope, call->caller());
    const std::vector<rpc::Bytes>& bulk = call->request().bulk;
    if (bulk.size() > 1 || envelope.sequence < sender.next ||
        envelope.sequence - sender.next > kMostAhead ||
        sender.arrived.contains(envelope.sequence)) {
      throw InvalidArgumentError(str(call->caller().task, " sent message ", envelope.sequence,
                                     " of ", bulk.size(), " parts where ", sender.next,
                                     " is next"));
    }
    rpc::Bytes bytes = bulk.empty() ? rpc::Bytes{} : bulk[0];
    const bool keep = sender.arrived.size() >= kMostAnswered;
    sender.arrived.emplace(envelope.sequence,
                           Arrived{keep ? std::move(call) : nullptr, std::move(bytes)});
  }
  changed_.notify_all();
  if (call) call->reply({});
}

void RpcMailbox::watch(const RpcEnvelope& envelope, std::unique_ptr<rpc::Call> call) {
  {
    const std::lock_guard lock(mutex_);
    admit(envelope, call->caller());
  }
  // Nothing is done when it is cancelled: this task's own watch at the sender tells whether that is
  // lost or has left, and a task that leaves breaks its connections in either order.
  {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
    // An earlier one gets the answer that this one would.
    if (!has_left_) std::swap(peer(envelope.rank).watch, call);
  }
  if (call) call->reply({});
}

bool RpcMailbox::wait_locked(std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                             FunctionRef<bool()> condition) {
  const auto is_over = [&] { return error_ != nullptr || condition(); };
  const bool in_time = changed_.wait_until(lock, deadline, is_over);
  if (error_) std::rethrow_exception(error_);
  return in_time;
}

bool RpcMailbox::wait(Clock::time_point deadline, FunctionRef<bool()> condition) {
  std::unique_lock lock(mutex_);
  return wait_locked(lock, deadline, condition);
}

std::optional<rpc::Bytes> RpcMailbox::take(int from, Clock::time_point deadline,
                                           FunctionRef<bool()> meanwhile) {
  Arrived message;
  {
    std::unique_lock lock(mutex_);
    Peer& sender = peer(from);
    const auto is_there = [&] { return sender.arrived.contains(sender.next); };
    wait_locked(lock, deadline, [&] { return is_there() || sender.has_left || meanwhile(); });
    if (!is_there()) {
      if (!sender.has_left) return std::nullopt;
      throw UnavailableError(
          str(tasks_[static_cast<size_t>(from)], " has left group '", group_, "'"));
    }
    message = std::move(sender.arrived.extract(sender.next).mapped());
    ++sender.next;
  }
  if (message.call) message.call->reply({});
  return std::move(message.bytes);
}

bool RpcMailbox::begin_send(int to, bool lent) {
  const std::lock_guard lock(mutex_);
  Peer& receiver = peer(to);
  if (receiver.unanswered >= kWindow) return false;
  ++receiver.unanswered;
  receiver.lent += lent ? 1 : 0;
  return true;
}

void RpcMailbox::end_send(int to, bool lent, const std::exception_ptr& error) {
  {
    const std::lock_guard lock(mutex_);
    Peer& receiver = peer(to);
    --receiver.unanswered;
    receiver.lent -= lent ? 1 : 0;
  }
  changed_.notify_all();
  if (error) call_failed(to, error);
}

void RpcMailbox::call_failed(int rank, const std::exception_ptr& error) {
  const bool is_lost =
      rpc::is_unanswered(error, Code::kUnavailable, tasks_[static_cast<size_t>(rank)]);
  is_lost ? lost(rank, internal::record_error(error).message) : fail(error);
}

void RpcMailbox::fail(const std::exception_ptr& error) noexcept {
  std::vector<std::unique_ptr<rpc::Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = error;
    calls = take_kept_calls();
  }
  changed_.notify_all();
  for (const auto& call : calls) call->fail(error);
  const std::lock_guard lock(ended_mutex_);
  if (on_end_) on_end_();
}

void RpcMailbox::on_end(std::function<void()> ended) {
  const std::lock_guard ending(ended_mutex_);
  on_end_ = std::move(ended);
  bool has_ended = false;
  {
    const std::lock_guard lock(mutex_);
    has_ended = error_ != nullptr;
  }
  if (has_ended && on_end_) on_end_();
}

bool RpcMailbox::has_arrived(int from) const {
  const std::lock_guard lock(mutex_);
  return peer(from).arrived.contains(peer(from).next);
}

std::vector<std::unique_ptr<rpc::Call>> RpcMailbox::take_kept_calls() {
  std::vector<std::unique_ptr<rpc::Call>> calls;
  for (Peer& peer : peers_) {
    if (peer.watch) calls.push_back(std::move(peer.watch));
    for (auto& [sequence, message] : peer.arrived) {
      if (message.call) calls.push_back(std::move(message.call));
    }
    peer.arrived.clear();
  }
  return calls;
}

void RpcMailbox::lost(int rank, const std::string& how) {
  {
    const std::lock_guard lock(mutex_);
    if (peer(rank).has_left || has_left_) return;
  }
  fail(lost_error(tasks_[static_cast<size_t>(rank)], how, generation_));
}

void RpcMailbox::has_left(int rank) {
  {
    const std::lock_guard lock(mutex_);
    peer(rank).has_left = true;
  }
  changed_.notify_all();
}

std::exception_ptr RpcMailbox::leave() {
  std::vector<std::unique_ptr<rpc::Call>> calls;
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    has_left_ = true;
    error = error_;
    calls = take_kept_calls();
  }
  // An answer, not an error: whoever has all that it needs goes on. A message that nobody has taken
  // is answered too; its sender learns from the watch that this task has left.
  for (const auto& call : calls) call->reply({});
  return error;
}

void RpcMailbox::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace cohort::collective
