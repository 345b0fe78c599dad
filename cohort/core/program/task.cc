#include "cohort/core/program/task.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

thread_local const Task* scoped_task = nullptr;
std::atomic<const Task*> process_task{nullptr};

}  // namespace

// Never destroyed, so that no end of the program matters. A process meets few names.
const Task& Task::named(const std::string& job, int index) {
  struct Known {
    std::mutex mutex;
    std::map<std::pair<std::string, int>, const Task*> tasks;
  };
  static auto* const known = new Known;
  const std::lock_guard lock(known->mutex);
  const Task*& task = known->tasks[{job, index}];
  if (task == nullptr) task = new Task(job, index);
  return *task;
}

const Task& Task::current() {
  if (scoped_task != nullptr) return *scoped_task;
  if (const Task* task = process_task.load(std::memory_order_acquire)) return *task;
  static const Task& alone = named("localhost", 0);
  return alone;
}

bool Task::is_scoped() { return scoped_task != nullptr; }

void Task::set_for_process(const Task& task) {
  const Task* before = nullptr;
  if (process_task.compare_exchange_strong(before, &task) || before == &task) return;
  throw FailedPreconditionError("this process is " + before->to_string() +
                                " of a cluster and cannot be " + task.to_string() + ", too");
}

std::string Task::to_string() const { return "/job:" + job_ + "/task:" + decimal_digits(index_); }

void throw_of_other_task(const std::string& what, const Task& owner) {
  throw FailedPreconditionError(what + " belongs to " + owner.to_string() +
                                ", whose code made it, and is used in a step of " +
                                Task::current().to_string() +
                                "; each task makes a model of its own under strategy.scope()");
}

ScopedTask::ScopedTask(const Task& task) : previous_(std::exchange(scoped_task, &task)) {}
ScopedTask::~ScopedTask() { scoped_task = previous_; }

}  // namespace cohort::internal
