// The threads of one process that run the same step and meet during it. All collectives between the
// replicas of a process are built on this class.
//
//   ThreadGroup group(2);
//   group.begin({.timeout = std::chrono::seconds(10)});
//   // on each thread, with its rank:
//   group.meet(rank, "sum", &my_value, [&](std::span<void* const> all) { ... });  // the last to come
//   group.leave(rank);
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/wait_point.h"

namespace cohort::collective {

struct RoundOptions {
  // How long a member waits for the others at a barrier.
  std::chrono::nanoseconds timeout = std::chrono::minutes(10);
  // Members run one at a time, in the order of ranks; the next one's turn begins at a barrier and
  // at the end.
  bool sequential = false;
};

// How messages name the members: with `first` = 2, member 0 is "replica 2".
struct MemberNames {
  const char* noun = "replica";
  int first = 0;
};

// Thrown by the calls of a member because another member failed; the original error is that
// member's.
class GroupBrokenError : public AbortedError {
 public:
  using AbortedError::AbortedError;
};

// A round is one step: begin; then each member enters, meets the others any number of times, and
// leaves or fails. After a failure every barrier of the round throws; the next begin() restores the
// group. A barrier costs a few atomic operations, and a wake-up if a member was asleep.
// Thread safety: begin() alone; the rest by each member with its own rank.
class ThreadGroup {
 public:
  // spin: how long a waiting member polls before it sleeps.
  ThreadGroup(int size, std::chrono::nanoseconds spin, MemberNames names = {});

  int size() const { return static_cast<int>(members_.size()); }
  std::chrono::nanoseconds spin() const { return spin_; }

  void begin(const RoundOptions& options);
  // Whether the members of this round run one at a time.
  bool takes_turns() const { return options_.sequential; }
  // Waits for the member's turn in a sequential round.
  void enter(int rank);
  // The member's step has ended. Members that wait for it get a FailedPreconditionError.
  void leave(int rank);
  // The member's step has failed; members that wait, or will wait, get a GroupBrokenError.
  void fail(int rank);

  // Waits for all members. The last to arrive calls leader(all), where `all` holds what each member
  // passed as `mine`. An exception from leader is thrown to all members. `mine` may be read until
  // leader returns. timeout: 0 means the round's.
  // Errors: FailedPrecondition (the others are at a barrier of another name, or have ended; in a
  // child that was forked during the round), DeadlineExceeded (names who did not come),
  // GroupBrokenError.
  void meet(int rank, const char* what, void* mine,
            FunctionRef<void(std::span<void* const>)> leader,
            std::chrono::nanoseconds timeout = {});

  // Runs work on memory that all members share. The members meet as in meet; `check` sees what all
  // have passed and may throw. Then work(all) is called on every member at the same time. Returns
  // when all have finished, so every member may read and write every `mine` until then.
  // Errors: meet's; those of `check` on every member; those of `work` on the member that threw
  // them.
  void share(int rank, const char* what, void* mine,
             FunctionRef<void(std::span<void* const>)> check,
             FunctionRef<void(std::span<void* const>)> work, std::chrono::nanoseconds timeout = {});

  // The error between members in this round; null if there was none.
  std::exception_ptr error() const;
  // "replica 1 (in step), replica 2 (ended)": the members not at the current barrier.
  std::string missing_members() const;
  // "replica 1": the members that have neither left nor failed.
  std::string members_inside() const;

 private:
  enum class State { kRunning, kWaiting, kLeft, kFailed };
  struct alignas(64) Member {
    const char* what = "";
    std::atomic<State> state{State::kRunning};
    std::atomic<int64_t> barriers{0};
    internal::WaitPoint its_turn;  // where it waits in a sequential round
  };

  // barrier_ packs into one word the generation of the current barrier, whether it can no longer be
  // completed, and how many members have arrived. So a barrier is either completed or closed, never
  // both.
  static constexpr uint64_t kClosed = uint64_t{1} << 31;
  static constexpr uint64_t kCount = kClosed - 1;
  static uint64_t generation_of(uint64_t barrier) { return barrier >> 32; }

  void gather(int rank, const char* what, void* mine,
              FunctionRef<void(std::span<void* const>)> leader, std::chrono::nanoseconds timeout);
  void finish(int rank);
  bool close_barrier(uint64_t generation);
  void close_current_barrier();
  void break_round(std::exception_ptr error);
  void lead(uint64_t generation, FunctionRef<void(std::span<void* const>)> leader);
  void end_barrier(uint64_t generation);
  void wait_for_barrier(int rank, uint64_t generation, const char* what,
                        std::chrono::nanoseconds timeout);
  std::string name_of(size_t member) const;
  void check_same_barrier() const;
  bool has_turn(int rank) const { return turn_.load() == rank; }
  void wait_for_turn(int rank);
  void pass_turn(int rank);
  void wake_all();
  [[noreturn]] void throw_broken();

  const internal::HomeProcess home_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<void*> payloads_;
  std::chrono::nanoseconds spin_;
  const MemberNames names_;
  RoundOptions options_;

  std::atomic<uint64_t> barrier_{0};
  std::atomic<int> left_{0};
  std::atomic<bool> broken_{false};
  std::exception_ptr barrier_error_;
  std::atomic<int> finished_{0};
  std::atomic<uint64_t> finish_generation_{0};
  std::atomic<int> turn_{0};
  internal::WaitPoint wait_point_;

  mutable std::mutex error_mutex_;
  std::exception_ptr error_;
};

}  // namespace cohort::collective
