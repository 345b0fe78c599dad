// The mailbox for the messages that the other tasks of a group send to a task's server. It also
// keeps what this task knows of them: which tasks are lost, which have left in good order, and
// whose answers are awaited.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/service.h"
#include "cohort/collective/group_member.h"
#include "cohort/collective/network/rpc_envelope.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/task_id.h"

namespace cohort::collective {

// Memory is bounded: of a task's messages kMostAnswered are answered when they arrive, the others
// when they are taken; and a task keeps at most kWindow messages to another unanswered.
// Thread safety: any thread.
class RpcMailbox : public std::enable_shared_from_this<RpcMailbox> {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kWindow = 8;
  static constexpr size_t kMostAnswered = 8;

  explicit RpcMailbox(const GroupMember& member);

  const std::string& group() const { return group_; }
  int64_t generation() const { return generation_; }
  uint64_t session() const { return session_; }

  // Takes a message that has come.
  // Errors: PermissionDenied (the caller is not the task of its rank), FailedPrecondition (for
  // another session), InvalidArgument (out of order), what has ended the group.
  void put(const RpcEnvelope& envelope, std::unique_ptr<internal::rpc::Call> call);
  // A task wants to hear of the end of this one. Errors: those of put.
  void watch(const RpcEnvelope& envelope, std::unique_ptr<internal::rpc::Call> call);

  // The next message of `from`, once it is there; nothing at the deadline, or when `meanwhile`,
  // asked whenever something has changed, is true. Errors: what has ended the group, Unavailable
  // (`from` has left).
  std::optional<internal::rpc::Bytes> take(int from, Clock::time_point deadline,
                                           FunctionRef<bool()> meanwhile);
  // Whether it is there.
  bool has_arrived(int from) const;
  // Whether `condition` came true by the deadline. Errors: what has ended the group.
  bool wait(Clock::time_point deadline, FunctionRef<bool()> condition);

  // Counts a message that goes to `to`; false where it must wait for answers. `lent`: its memory is
  // the caller's until the answer comes.
  bool begin_send(int to, bool lent);
  void end_send(int to, bool lent, const std::exception_ptr& error);
  // A call of this task to `rank` has failed, and with it the group.
  void call_failed(int rank, const std::exception_ptr& error);
  // For conditions of take and wait.
  bool may_send(int to) const { return peer(to).unanswered < kWindow; }
  int unanswered(int to) const { return peer(to).unanswered; }
  int lent(int to) const { return peer(to).lent; }

  // Ends the group, and tells the others why. Only the first call has an effect.
  void fail(const std::exception_ptr& error) noexcept;
  void lost(int rank, const std::string& how);
  void has_left(int rank);
  // Tells the others that this task leaves. Returns what has ended the group, or null.
  std::exception_ptr leave();
  void check() const;
  // See Transport::on_end.
  void on_end(std::function<void()> ended);

 private:
  struct Arrived {
    std::unique_ptr<internal::rpc::Call> call;  // null once answered
    internal::rpc::Bytes bytes;
  };
  struct Peer {
    uint64_t incarnation = 0;  // 0: it has not called yet
    std::map<uint64_t, Arrived> arrived;
    uint64_t next = 0;  // of the message that is taken next
    int unanswered = 0;
    int lent = 0;
    bool has_left = false;
    std::unique_ptr<internal::rpc::Call> watch;
  };

  const Peer& peer(int rank) const { return peers_[static_cast<size_t>(rank)]; }
  Peer& peer(int rank) { return peers_[static_cast<size_t>(rank)]; }
  // The caller's place; for a locked mutex.
  Peer& admit(const RpcEnvelope& envelope, const internal::rpc::Caller& caller);
  // For a locked mutex, as the next.
  std::vector<std::unique_ptr<internal::rpc::Call>> take_kept_calls();
  bool wait_locked(std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                   FunctionRef<bool()> condition);

  const std::string group_;
  const int64_t generation_;
  const int rank_;
  const std::vector<TaskId> tasks_;
  const uint64_t session_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::exception_ptr error_;
  bool has_left_ = false;

  std::mutex ended_mutex_;  // guards what follows, and is held while it is called
  std::function<void()> on_end_;
};

}  // namespace cohort::collective
