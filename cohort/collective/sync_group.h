// The replicas of a step, wherever they are: the threads of this task and the other tasks.
//
//   SyncGroup group(2, spin);                       // two threads, one task
//   SyncGroup group(2, spin, communicator);         // two threads of each of several tasks
//
// There is always a group: a single replica has a group of one.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "cohort/collective/communicator.h"
#include "cohort/collective/group_view.h"
#include "cohort/collective/thread_group.h"
#include "cohort/core/function_ref.h"

namespace cohort::collective {

// Thread safety: with one local replica, meet and share from any thread; else as ThreadGroup. Calls
// of between() as Communicator; while a step runs, only in the leader of a meeting.
class SyncGroup {
 public:
  // communicator: to the other tasks; null if there are none. Its calls are checked (see
  // CheckedCommunicator). COLLECTIVE over its tasks, which tell each other how many replicas they
  // have.
  // Errors: those of a Communicator's calls.
  SyncGroup(int local_replicas, std::chrono::nanoseconds spin,
            std::shared_ptr<Communicator> communicator = nullptr);

  // Who takes part now. Changes only between steps.
  const std::shared_ptr<const GroupView>& view() const { return view_; }
  bool spans_tasks() const { return view_->num_tasks() > 1; }
  Communicator& between() { return *communicator_; }

  // The threads of this task, with which its part of a step begins and ends.
  ThreadGroup& threads() { return threads_; }
  // Begins a step. Its timeout applies between threads and between tasks.
  void begin(const RoundOptions& options);
  // Ends the step. Outside of steps, calls between tasks have the default timeout.
  void end() { timeout_ = RoundOptions().timeout; }
  // How long a call between tasks may wait now.
  std::chrono::nanoseconds timeout() const { return timeout_; }

  // As ThreadGroup's, between the threads of this task. A single thread calls its functions at
  // once.
  void meet(int local_replica, const char* what, void* mine,
            FunctionRef<void(std::span<void* const>)> leader);
  void share(int local_replica, const char* what, void* mine,
             FunctionRef<void(std::span<void* const>)> check,
             FunctionRef<void(std::span<void* const>)> work);

 private:
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<const GroupView> view_;
  ThreadGroup threads_;
  std::chrono::nanoseconds timeout_ = RoundOptions().timeout;
};

}  // namespace cohort::collective
