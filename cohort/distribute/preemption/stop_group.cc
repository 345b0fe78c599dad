#include "cohort/distribute/preemption/stop_group.h"

#include <algorithm>
#include <numeric>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

using distribute::ClusterTask;
using distribute::ClusterView;
using distribute::TaskStatus;

namespace {

// How often a task that waits for another one looks whether that is still there.
constexpr std::chrono::milliseconds kLook{200};

bool is_gone(const ClusterTask& task) {
  return task.status == TaskStatus::kLost || task.status == TaskStatus::kLeft;
}

}  // namespace

std::string name_of(const StopGroup& group, size_t task) {
  return task < group.tasks.size() ? to_string(group.tasks[task]) : "this task";
}

size_t parse_task(const StopGroup& group, const std::string& text) {
  const auto task = parse_number<int64_t>(text);
  const size_t count = group.tasks.size();
  if (task && *task >= 0 && static_cast<uint64_t>(*task) < count) return static_cast<size_t>(*task);
  throw DataLossError(
      str("where the number of one of ", count, " tasks was to stand is ", quoted(text)));
}

std::vector<size_t> others(const StopGroup& group) {
  std::vector<size_t> tasks(group.tasks.size());
  std::iota(tasks.begin(), tasks.end(), size_t{0});
  std::erase(tasks, group.self);
  return tasks;
}

std::vector<size_t> tasks_under(const StopGroup& group, const std::string& keys,
                                const StopWait& wait) {
  std::vector<size_t> tasks;
  for (const std::string& key : until_answered(wait, [&] { return group.cluster->list(keys); })) {
    tasks.push_back(parse_task(group, key.substr(keys.size())));
  }
  return tasks;
}

std::vector<size_t> gone_of(const StopGroup& group, const std::vector<size_t>& tasks,
                            const ClusterView& view) {
  std::vector<size_t> gone;
  for (const size_t task : tasks) {
    const auto is_it = [&](const ClusterTask& one) {
      return is_gone(one) && one.task == group.tasks.at(task);
    };
    if (std::any_of(view.tasks.begin(), view.tasks.end(), is_it)) gone.push_back(task);
  }
  return gone;
}

void drop(std::vector<size_t>& tasks, const std::vector<size_t>& gone) {
  std::erase_if(
      tasks, [&](size_t task) { return std::find(gone.begin(), gone.end(), task) != gone.end(); });
}

std::optional<std::string> look_for(const StopGroup& group, const std::string& key) {
  try {
    return group.cluster->get(key, kLook);
  } catch (const DeadlineExceededError&) {
    return std::nullopt;
  }
}

void check_awaited(const StopGroup& group, const std::vector<size_t>& awaited,
                   const ClusterView& view, const StopWait& wait) {
  const std::vector<size_t> gone = gone_of(group, awaited, view);
  for (const ClusterTask& one : view.tasks) {
    if (gone.empty() || one.task != group.tasks.at(gone.front())) continue;
    throw UnavailableError(
        str(wait.failed, one.task, one.status == TaskStatus::kLost ? " was lost" : " has left"));
  }
  if (StopWait::Clock::now() < wait.since + wait.patience) return;
  throw DeadlineExceededError(
      str(wait.failed, name_of(group, awaited.front()), wait.missed, wait.patience.count(), " ms"));
}

}  // namespace cohort::internal
