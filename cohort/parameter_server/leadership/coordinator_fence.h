// Decides which coordinator a task of a parameter server cluster obeys, and which workers still
// count.
//
// A coordinator takes each task over with a generation, higher than any that the task has seen. It
// gives each worker a session: the generation, and a number that is higher each time the worker is
// taken, again after it was lost, too. Closures and pushes name their session, so that those of an
// earlier coordinator, and the late ones of a worker whose closures run elsewhere by now, are told
// from the others and refused.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/message.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// The strategy that leads. Programs of tests make several, one after the other.
struct LeaderOrigin {
  uint64_t program = 0;  // random, of each process; 0: not known
  uint64_t made = 0;     // the how manieth strategy of the program
};

using SessionId = uint64_t;
inline constexpr int kSessionNumberBits = 30;
constexpr SessionId session_id(int64_t generation, uint64_t number) {
  return static_cast<uint64_t>(generation) << kSessionNumberBits | number;
}
constexpr int64_t generation_of(SessionId session) {
  return static_cast<int64_t>(session >> kSessionNumberBits);
}

// A message with the session of its sender, which decoders of its own fields pass over.
void stamp(rpc::Message& message, SessionId session);
// 0: it has none. Errors: DataLoss.
SessionId session_of(const rpc::Message& message);

// Errors of all calls: Aborted "fenced, generation g", which is counted; Unavailable (no
// coordinator has taken this task since it was started).
// Thread safety: any thread.
class CoordinatorFence {
 public:
  explicit CoordinatorFence(TaskId self) : self_(std::move(self)) {}

  // `handler` is called with each new generation, while nobody has a ChangePass: what earlier ones
  // have left goes. It must not call the fence.
  void on_new_generation(std::function<void(int64_t)> handler);

  // The coordinator of `incarnation` takes this task. `session`: a worker's; others have none.
  // Again by the same coordinator it only renews the session. Returns the generation that had the
  // task; 0: none had.
  // Errors: Aborted (a coordinator of this generation or a later one has it; detail.generation is
  // that one's; or one of a later strategy of the same program, then detail.cause is kSuperseded).
  int64_t take(int64_t generation, uint64_t incarnation, SessionId session = 0,
               const LeaderOrigin& origin = {});

  // 0: nobody has taken this task.
  int64_t generation() const;
  // Whether the coordinator of this generation is the one that is obeyed.
  void check_generation(int64_t generation) const;
  // For a worker: whether the closure is of its session as it is now.
  void check_closure(SessionId session) const;
  // For a ps task that is asked for values: an earlier coordinator's program and its workers would
  // get those of other variables. Session 0 is an evaluator's, who reads what there is.
  void check_reader(const TaskId& caller, SessionId session) const;

  // While it lives, nobody takes the task over and no worker is refused: a change that was admitted
  // is made before, or not at all.
  class [[nodiscard]] ChangePass {
   public:
    explicit ChangePass(const CoordinatorFence* fence) : fence_(fence) {}
    ChangePass(ChangePass&& other) noexcept : fence_(std::exchange(other.fence_, nullptr)) {}
    ChangePass& operator=(ChangePass&&) = delete;
    ~ChangePass() {
      if (fence_ != nullptr) fence_->leave();
    }

   private:
    const CoordinatorFence* fence_;
  };
  // For a ps task: whether the caller may change variables.
  ChangePass admit_change(const TaskId& caller, SessionId session) const;

  // Refuses the worker's sessions below `session` from here on.
  void refuse_below(int worker, SessionId session);

  // How many calls were refused.
  int64_t refused() const;

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void throw_fenced(const std::string& what, Cause cause = Cause::kFenced) const;
  void require_taken() const;
  // Waits until nobody has a pass, and lets nobody in meanwhile.
  std::unique_lock<std::mutex> close();
  void open(std::unique_lock<std::mutex> lock);
  void leave() const;

  const TaskId self_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  mutable int passes_ = 0;
  int closing_ = 0;  // threads that wait for passes to end
  int64_t generation_ = 0;
  uint64_t incarnation_ = 0;
  LeaderOrigin origin_;
  SessionId session_ = 0;
  std::map<int, SessionId> lowest_;  // by worker
  mutable int64_t refused_ = 0;
  std::function<void(int64_t)> handler_;
};

}  // namespace cohort::internal
