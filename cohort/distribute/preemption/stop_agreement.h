// How the tasks of a group agree after which call of a function all of them stop.
//
// The task that wants to stop (the asker) says so under a key: "I have finished n calls". Every
// other task answers with the number of the call that it finishes next, begun or not, and begins no
// further one until it knows the decision. The asker decides on the highest of these numbers, which
// is n + 1 where tasks are in step. So each task still has to finish the decided call, however far
// they are apart, and all that they wait for is two messages each. Where a task makes no more
// calls, there is nothing to agree on, and all go on to their own end.
//
// An attempt fails if a task does not answer, or the asker is lost: "no decision" stands then where
// the decision would. Who writes there first has said it for all. All tasks go on, and the next
// attempt, under keys of its own, may be any task's.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/threads/synchronized.h"
#include "cohort/distribute/preemption/stop_group.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

// Thread safety: any thread; begin_call and finish_call from one at a time.
class StopAgreement {
 public:
  // finished: the number of calls before the first. `round`: another one each time that a group
  // agrees.
  StopAgreement(StopGroup group, int round, int64_t finished);

  // Before and after a call of the function. They wait while a decision is being made.
  // Errors: of begin_call Unavailable, once for each attempt of another task that has failed (names
  // that task and the one to blame); DeadlineExceeded (the coordination service does not answer).
  void begin_call();
  // Returns whether all stop here: after that call, or a later one where the stop has failed.
  bool finish_call();
  // After `call`, for which finish_call has returned true, and before what the tasks do together
  // there: waits until all others have come to the end of that call, or have done it after an
  // earlier one. Where doing it fails, meet() again after the next call.
  // Errors: FailedPrecondition (a task makes no more calls, and has not done it: names it; then
  // there is no stop any more), DeadlineExceeded (a task does not come), Unavailable (a task is
  // lost or has left, but not where all have met before: who tries again does so without it); all
  // name the task.
  // Thread safety of this and the next two: one thread.
  void meet(int64_t call);
  // After meet(): calls `part`, this task's part of what all do there, which may make collective
  // calls of `calls`.
  // Errors: those of DoneTogether::run, one of which all get where a part has thrown.
  void do_together(const std::string& what, train::SaveGroup& calls, FunctionRef<void()> part);
  // Whether there is a decision, after which this task still has its part to do.
  bool is_due() const;

  // Says that this task wants to stop. `note` goes to all tasks with the decision. Returns whether
  // this task is the one that decides. Otherwise another one decides, and may fail: ask again until
  // is_settled().
  // Errors: DeadlineExceeded, Unavailable (a task did not answer; names it). The attempt has failed
  // then.
  bool ask(const std::string& note);
  // Waits up to `timeout` for another task to ask, and takes part. Returns is_settled(). Once it
  // has answered it waits for the decision as long as that may take, also where the coordinating
  // task stands still: a task that goes on without it runs past the call that its answer has made
  // the agreed one.
  // Errors: those of Coordination, but no loss of a task.
  bool answer(std::chrono::milliseconds timeout);
  // This task makes no more calls: tells those that ask, now and later, who need not wait for its
  // answer, and those that come to the call after which all were to stop, if it was to come, too.
  // Its own calls of ask() and answer() return soon. Errors: those of Coordination.
  void end();

  // Whether there is a decision, or there will be none, since a task makes no more calls.
  bool is_settled() const;
  bool is_decided() const;
  // The note of the task that decided. Only if is_decided().
  std::string note() const;

 private:
  struct State {
    int64_t begun = 0;
    int64_t finished = 0;
    int attempt = 0;
    int holds = 0;     // so many threads are at making a decision
    size_t asker = 0;  // who asked, of the latest of them
    std::exception_ptr failure = nullptr;
    bool has_ended = false;  // a task makes no more calls
    std::optional<int64_t> last_call = std::nullopt;
    std::string note = "";
  };
  class Hold;  // while it lives, a thread is at making a decision

  std::string key(int attempt, const std::string& what) const;
  std::string ended_keys() const;
  std::string done_keys() const;
  int current_attempt() const;
  std::optional<int64_t> answers_of_others(int attempt, const StopWait& wait);
  std::string decision_of(size_t asker, int attempt, const StopWait& wait);
  bool somebody_has_ended(const StopWait& wait) const;
  void wait_for_others(int64_t call);
  void drop_gone(std::vector<size_t>& awaited, const distribute::ClusterView& view) const;
  void check_none_has_ended(const std::vector<size_t>& awaited, const std::vector<size_t>& ended);
  void set_done();
  static StopWait for_agreement(std::chrono::milliseconds patience);
  std::string settle(int attempt, const std::string& outcome);
  void conclude(size_t asker, int attempt, const std::string& outcome);
  void fail(int attempt, const std::exception_ptr& reason);
  void wait_for_decision(Synchronized<State>::Changing& state);

  const StopGroup group_;
  const int round_;
  bool has_met_ = false;  // of the thread that calls meet, as all until state_
  bool is_done_ = false;
  int64_t met_after_ = 0;               // the call of the latest barrier
  std::vector<size_t> have_come_ = {};  // the other tasks that were there
  Synchronized<State> state_;
};

}  // namespace cohort::internal
