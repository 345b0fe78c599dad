#include "cohort/collective/groups_of_task.h"

#include <map>
#include <mutex>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

using internal::Task;

struct Groups {
  std::mutex mutex;
  std::map<const Task*, int> count;  // guarded by mutex
};

Groups& groups() {
  static auto* const all = new Groups;  // strategies may outlive static objects
  return *all;
}

}  // namespace

GroupOfTask::GroupOfTask() : task_(Task::current()) {
  Groups& all = groups();
  const std::lock_guard lock(all.mutex);
  ++all.count[&task_];
}

GroupOfTask::~GroupOfTask() {
  Groups& all = groups();
  const std::lock_guard lock(all.mutex);
  --all.count[&task_];
}

std::string hint_of_other_groups() {
  Groups& all = groups();
  const std::lock_guard lock(all.mutex);
  const auto own = all.count.find(&Task::current());
  if (own == all.count.end() || own->second < 2) return "";
  return internal::str(" (this task is in ", own->second,
                       " groups; where it waits in one of them for a task that waits for it in "
                       "another, the tasks use "
                       "their strategies in different orders: use them in the same one)");
}

}  // namespace cohort::collective
