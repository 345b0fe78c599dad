// The barrier of the tasks of a group, at which they wait for each other. A failure of the group
// reaches all of them there.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include "cohort/collective/group_member.h"
#include "cohort/collective/shared_memory/layout.h"
#include "cohort/collective/shared_memory/lifelines.h"
#include "cohort/core/host/polling.h"

namespace cohort::collective::shared_memory {

using Deadline = std::chrono::steady_clock::time_point;

// For what, and until when, a call waits for the other tasks.
struct Waiting {
  // The time of the wait begins now.
  Waiting(std::string_view call, std::chrono::nanoseconds timeout);

  std::string_view call;
  std::chrono::nanoseconds timeout;
  Deadline until;
};

// A barrier is completed for all tasks or for none. What a task has written before it arrived, all
// see afterwards.
// Thread safety: meet() and check_alive() by one thread; the rest from any.
class SharedBarrier {
 public:
  // The parts of the shared memory, which outlive it.
  struct Memory {
    Control* control = nullptr;
    TaskSlot* slots = nullptr;
  };
  using TaskName = std::function<std::string(int rank)>;

  SharedBarrier(Memory memory, const GroupMember& member, Lifelines lifelines, TaskName task_name);
  // Tells the others that this task has left.
  void leave();

  // Waits for all tasks.
  // Errors: that of the group (see fail); DeadlineExceeded and Unavailable, which become the
  // group's.
  void meet(const Waiting& waiting);
  // Errors: that of the group; Unavailable, which becomes the group's, where a task has ended.
  void check_alive();
  // Ends the work of the group: barriers that are not completed, and all later ones, throw `error`
  // on every task. Only the first call of a group has an effect.
  void fail(const std::exception_ptr& error) noexcept;
  // How long a task polls before it sleeps. It does not poll if tasks wait for each other's cores,
  // nor at the first barrier, before all are known to be on cores of their own.
  std::chrono::nanoseconds polling_time() const { return polling_time_; }

 private:
  void choose_polling_time();
  void wait(uint32_t before, const Waiting& waiting);
  bool wait_awake(uint32_t before);
  void wait_asleep(uint32_t before, const Waiting& waiting);
  bool close_barrier(uint32_t before);
  void write_error(const std::exception_ptr& error) noexcept;
  void fail_if_tasks_are_lost(std::string_view call);
  std::vector<int> missing_tasks() const;
  std::exception_ptr missing_error(const Waiting& waiting) const;
  [[noreturn]] void throw_failure() const;
  std::string names_of(const std::vector<int>& ranks) const;

  Control& control_;
  TaskSlot* slots_;
  const int rank_;
  const int size_;
  const std::chrono::nanoseconds slow_after_;
  Lifelines lifelines_;
  const TaskName task_name_;
  uint32_t barriers_ = 0;
  std::chrono::nanoseconds polling_time_{0};
  internal::Polling polling_;
};

}  // namespace cohort::collective::shared_memory
