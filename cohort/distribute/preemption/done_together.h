// Lets the tasks that have met at a call do something there, each its own part. An error of one
// part is an error of all tasks, which may then try again together.
//
// A part may make collective calls of a group, as a save does. A task whose part has thrown makes
// none of them any more, and the others would wait for it. So each task whose part has ended makes
// one more call: a barrier of that group. Where others are still at another call, all are refused
// by the fingerprints of their calls (CheckedCommunicator): at once, and without harm to the group.
// With that error the others' parts end, and so all come to the barrier. The first task whose part
// has thrown has said so before its barrier: its error is that of all.
#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/preemption/stop_group.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

// One try of a task's part. Refers to its arguments. Thread safety: one thread.
class DoneTogether {
 public:
  // `keys`: of this try, the same in all tasks. `others`: the tasks that do it, too. `calls`: the
  // group whose collective calls a part may make.
  DoneTogether(const StopGroup& group, std::string keys, const std::vector<size_t>& others,
               train::SaveGroup& calls)
      : group_(group), keys_(std::move(keys)), others_(others), calls_(calls) {}

  // Calls `part`, and returns when it has returned in all tasks. `what` names it.
  // Errors: what `part` throws; where it has thrown in another task first, and here nothing or the
  // refusal of its calls, an error of that class: "WHAT of /job:worker/task:1 failed: ...".
  // Unavailable, DeadlineExceeded (a task is lost, or does not end its part: names it),
  // FailedPrecondition (the tasks can make no calls together any more, since one has begun more
  // steps), those of Coordination.
  void run(const std::string& what, FunctionRef<void()> part) const;

 private:
  struct Failure {
    size_t task;
    std::exception_ptr error;
  };

  std::string failed_key() const;
  std::string ended_keys() const;
  void tell_end(const std::exception_ptr& error, const StopWait& wait) const;
  void wait_for_ends(const std::string& what, const StopWait& wait) const;
  bool meet(const std::string& what, bool have_all_ended) const;
  std::optional<Failure> first_failure(const StopWait& wait) const;

  const StopGroup& group_;
  const std::string keys_;
  const std::vector<size_t>& others_;
  train::SaveGroup& calls_;
};

}  // namespace cohort::internal
