// The replicas of a step, wherever they are: the threads of this task and the other tasks.
//
//   SyncGroup group(2, spin);                       // two threads, one task
//   SyncGroup group(2, spin, communicator);         // two threads of each of several tasks
//
// There is always a group: a single replica has a group of one.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "cohort/collective/buffer_pool.h"
#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/communication_thread.h"
#include "cohort/collective/communicator.h"
#include "cohort/collective/group_view.h"
#include "cohort/collective/thread_group.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/process.h"

namespace cohort::collective {

class SyncGroup;

// What makes calls of the tasks again where they have lost one.
class GroupRepeater {
 public:
  // Makes `call`, which gives all tasks the same bytes. Where the group forms again it is made
  // again, or what other tasks have got of it is returned.
  // Errors: those of `call`, and of the forming.
  virtual std::string repeatable(FunctionRef<std::string()> call) = 0;
  // The group as it is now.
  virtual SyncGroup& group() const = 0;

 protected:
  ~GroupRepeater() = default;
};

// Thread safety: with one local replica, meet and share from any thread; else as ThreadGroup. Calls
// of between() as Communicator; while a step runs, only in the leader of a barrier. post, abort and
// buffers: any thread.
class SyncGroup {
 public:
  // How values of the replicas are added up: task by task, or by a tree over the replicas that does
  // not depend on the tasks (GroupView::division).
  enum class Order { kOfRanks, kOfTree };

  // communicator: to the other tasks; null if there are none. Its calls are checked (see
  // CheckedCommunicator). COLLECTIVE over its tasks, which tell each other how many replicas they
  // have.
  // Errors: those of a Communicator's calls.
  SyncGroup(int local_replicas, std::chrono::nanoseconds spin,
            std::shared_ptr<Communicator> communicator = nullptr, Order order = Order::kOfRanks);

  // The tasks and replicas that take part now. Changes only between steps.
  const std::shared_ptr<const GroupView>& view() const { return view_; }
  bool spans_tasks() const { return view_->num_tasks() > 1; }
  // For calls on the calling thread; waits until the posted ones are done. All calls of a task are
  // made in the order in which its code asks for them, so that it is the same on every task.
  Communicator& between() {
    communication_->drain();
    return *communicator_;
  }
  // Has `call` made by the communication thread, after all that were asked for before.
  void post(PostedCall& call) { communication_->post(call); }
  // The same for the last of them, when its caller or another thread drains next.
  void post_before_drain(PostedCall& call) { communication_->post_before_drain(call); }
  // Returns when the posted calls are done; makes those that have not begun.
  void drain() { communication_->drain(); }
  // Runs `attempted`, which a program asks for: it checks its arguments, and then needs the other
  // tasks. If a check fails, only this task knows, and the others' calls would meet its next call,
  // which is another one. So the others are told, by a call that differs from theirs, and get a
  // FailedPrecondition with the error's text. `what` names for them what failed: "reduce".
  // COLLECTIVE over the tasks. Errors: those of `attempted`.
  template <class Attempted>
  std::invoke_result_t<const Attempted&> attempt(std::string_view what,
                                                 const Attempted& attempted) {
    if (!spans_tasks()) return attempted();
    const uint64_t calls = calls_made();
    try {
      return attempted();
    } catch (...) {
      tell_of_failure(what, calls, internal::caught_error());
      throw;
    }
  }
  // Makes a call that gives all tasks the same bytes, by the repeater if there is one.
  std::string repeatable(FunctionRef<std::string(SyncGroup& now)> call) {
    if (repeater_ == nullptr) return call(*this);
    return repeater_->repeatable([&] { return call(repeater_->group()); });
  }
  bool is_repeated() const { return repeater_ != nullptr; }
  void set_repeater(GroupRepeater* repeater) { repeater_ = repeater; }
  // Ends the work of the group, see Communicator::abort. Posted calls end with that error.
  void abort(const std::exception_ptr& reason) noexcept { communicator_->abort(reason); }
  // Memory of the communicator, for objects that come and go during its life.
  BufferPool& buffers() { return buffers_; }

  // The threads of this task, with which its part of a step begins and ends.
  ThreadGroup& threads() { return threads_; }
  // Begins a step. Its timeout applies between threads and between tasks. Calls of one step never
  // meet those of another (CheckedCommunicator), so every task begins each of them.
  void begin(const RoundOptions& options);
  // Ends the step, if one has begun. Outside of steps, calls between tasks have the default
  // timeout.
  void end() {
    communicator_->end_step();
    timeout_ = RoundOptions().timeout;
  }
  // How long a call between tasks may wait now: as the step says, or less (call_timeout.h).
  std::chrono::nanoseconds timeout() const;

  // Works as ThreadGroup's, between the threads of this task. A single thread calls its functions
  // at once.
  void meet(int local_replica, const char* what, void* mine,
            FunctionRef<void(std::span<void* const>)> leader);
  void share(int local_replica, const char* what, void* mine,
             FunctionRef<void(std::span<void* const>)> check,
             FunctionRef<void(std::span<void* const>)> work);

 private:
  uint64_t calls_made() {
    drain();
    return communicator_->calls();
  }
  // Tells the other tasks of the error, if this task has made no call since `calls`.
  void tell_of_failure(std::string_view what, uint64_t calls, const std::exception_ptr& error);

  const std::shared_ptr<CheckedCommunicator> communicator_;
  BufferPool buffers_;
  const internal::HomePtr<CommunicationThread> communication_;
  std::shared_ptr<const GroupView> view_;
  ThreadGroup threads_;
  std::chrono::nanoseconds timeout_ = RoundOptions().timeout;
  GroupRepeater* repeater_ = nullptr;  // outlives it
};

}  // namespace cohort::collective
