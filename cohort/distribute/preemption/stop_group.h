// The tasks that stop together, and functions by which one of them learns what the others have said
// under the keys of a cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/coordination.h"
#include "cohort/core/error.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

struct StopGroup {
  distribute::Coordination* cluster = nullptr;  // nullptr: this task is alone
  std::string name = "";                        // of the group's keys, the same in all tasks
  std::vector<TaskId> tasks = {};
  size_t self = 0;  // which of them this is
  // How long a task waits for another one's answer.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
  // How long a task waits for another one to come to the call after which all stop, and to end what
  // it does there.
  std::chrono::milliseconds patience_for_call = std::chrono::minutes(10);
};

// A task's wait for others: what fails without them, what they have not done, since when and how
// long that may be.
struct StopWait {
  using Clock = std::chrono::steady_clock;

  std::string failed;
  std::string missed;
  Clock::time_point since;
  std::chrono::milliseconds patience;
};

// Returns the result of `call` of the cluster. A coordinating task may stand still for longer than
// a call waits (10 s), and is not lost for it. So this makes a call again that has had no answer in
// time: `call` may take effect more than once.
// Errors: those of `call`; DeadlineExceeded only if the time of `wait` is over.
template <class Call>
auto until_answered(const StopWait& wait, const Call& call) {
  while (true) {
    try {
      return call();
    } catch (const DeadlineExceededError&) {
      if (StopWait::Clock::now() >= wait.since + wait.patience) throw;
    }
  }
}

// "/job:worker/task:1"
std::string name_of(const StopGroup& group, size_t task);
// The number of a task. Errors: DataLoss.
size_t parse_task(const StopGroup& group, const std::string& text);
std::vector<size_t> others(const StopGroup& group);
// The tasks that have set one of `keys`, which end with the task. Errors: DataLoss, those of
// Coordination (see until_answered).
std::vector<size_t> tasks_under(const StopGroup& group, const std::string& keys,
                                const StopWait& wait);
// The members of `tasks` that are lost or have left.
std::vector<size_t> gone_of(const StopGroup& group, const std::vector<size_t>& tasks,
                            const distribute::ClusterView& view);
void drop(std::vector<size_t>& tasks, const std::vector<size_t>& gone);
// The value of the key, if it is there or comes within a moment.
// Errors: those of Coordination.
std::optional<std::string> look_for(const StopGroup& group, const std::string& key);
// Whether to wait on for all of `awaited`. Errors: Unavailable, DeadlineExceeded (one is gone, or
// silent; name it).
void check_awaited(const StopGroup& group, const std::vector<size_t>& awaited,
                   const distribute::ClusterView& view, const StopWait& wait);

}  // namespace cohort::internal
