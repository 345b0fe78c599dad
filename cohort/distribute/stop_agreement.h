// How the tasks of a group agree after which call of a function all of them stop.
//
// The task that wants to stop (the asker) says so under a key: "I have finished n calls". Every other
// task answers with the number of the call that it finishes next, begun or not, and begins no further one
// until it knows the decision. The asker decides on the highest of these numbers, which is n + 1 where
// tasks are in step. So each task still has to finish the decided call, however far they are apart, and
// all that they wait for is two messages each. Where a task makes no more calls, there is nothing to
// agree on, and all go on to their own end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/coordination.h"
#include "cohort/core/task_id.h"

namespace cohort::internal {

struct StopGroup {
  distribute::Coordination* cluster = nullptr;  // nullptr: this task is alone
  std::string name = "";                        // of the group's keys, the same in all tasks
  std::vector<TaskId> tasks = {};
  size_t self = 0;  // which of them this is
  // How long a task waits for another one's answer.
  std::chrono::milliseconds patience = std::chrono::seconds(30);
};

// Thread safety: any thread; begin_call and finish_call from one at a time.
class StopAgreement {
 public:
  // finished: the number of calls before the first. `round`: another one each time that a group
  // agrees.
  StopAgreement(StopGroup group, int round, int64_t finished);

  // Before and after a call of the function. They wait while a decision is being made.
  // Errors: DeadlineExceeded, Unavailable (no decision came; names whom it waited for).
  void begin_call();
  // Returns whether all stop here: after that call, or a later one where the stop has failed.
  bool finish_call();

  // This task wants to stop. `note` goes to all tasks with the decision. Returns whether this task is
  // the one that decides; if others ask at the same time, it may be one of them.
  // Errors: DeadlineExceeded, Unavailable (a task did not answer; names it). The others go on then.
  bool ask(const std::string& note);
  // Waits up to `timeout` for another task to ask, and takes part. Returns whether that is over: there
  // is a decision, or there will be none.
  bool answer(std::chrono::milliseconds timeout);
  // This task makes no more calls: tells those that ask, who need not wait for its answer.
  // Errors: those of Coordination.
  void end();

  bool is_decided() const;
  // Of the task that decided. Only if is_decided().
  std::string note() const;

 private:
  std::string key(const std::string& what) const;
  // Returns the number of the call that this task finishes next; it begins none after the one that it
  // has begun before the decision.
  int64_t hold();
  void let_go();
  // The number of the call that a task finishes next, and the highest of the others'; nothing where
  // one makes no more calls.
  std::optional<int64_t> answers_of_others();
  std::optional<int64_t> answer_of(size_t task);
  void decide(int64_t last_call, const std::string& note);
  // Tells the others, who wait, that there is no decision, and why.
  void go_on(const char* why);
  void wait_for_decision(std::unique_lock<std::mutex>& lock);

  const StopGroup group_;
  const int round_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t begun_;  // guarded by mutex_, as all that follows
  int64_t finished_;
  int holds_ = 0;  // so many threads are at making a decision
  std::optional<int64_t> last_call_;
  std::string note_;
};

}  // namespace cohort::internal
