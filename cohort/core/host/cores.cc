#include "cohort/core/host/cores.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace cohort::internal {
namespace {

constexpr int kNobody = -1;

// Gives cores to tasks, one each; a task with a choice makes room for one that has none.
class CoreAssignment {
 public:
  explicit CoreAssignment(std::span<const cpu_set_t> tasks)
      : tasks_(tasks), owner_(CPU_SETSIZE, kNobody) {}

  bool assign(int task) {
    asked_.assign(owner_.size(), false);
    return find_core(task);
  }

 private:
  bool find_core(int task) {
    for (size_t core = 0; core < owner_.size(); ++core) {
      if (asked_[core] || !CPU_ISSET(core, &tasks_[static_cast<size_t>(task)])) continue;
      asked_[core] = true;
      if (owner_[core] != kNobody && !find_core(owner_[core])) continue;
      owner_[core] = task;
      return true;
    }
    return false;
  }

  std::span<const cpu_set_t> tasks_;
  std::vector<int> owner_;   // of each core
  std::vector<bool> asked_;  // by the task that is being assigned
};

}  // namespace

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

std::string encode_cores(const cpu_set_t& cores) {
  return {reinterpret_cast<const char*>(&cores), sizeof cores};
}

cpu_set_t decode_cores(std::string_view bytes) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (bytes.size() == sizeof cores) std::memcpy(&cores, bytes.data(), sizeof cores);
  return cores;
}

bool each_can_have_a_core(std::span<const cpu_set_t> tasks) {
  CoreAssignment assignment(tasks);
  for (size_t task = 0; task < tasks.size(); ++task) {
    if (!assignment.assign(static_cast<int>(task))) return false;
  }
  return true;
}

int share_of_cores(std::span<const cpu_set_t> tasks, size_t self) {
  double share = 0;
  for (size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &tasks[self])) continue;
    const auto users = std::count_if(tasks.begin(), tasks.end(), [core](const cpu_set_t& task) {
      return CPU_ISSET(core, &task) != 0;
    });
    share += 1.0 / static_cast<double>(users);
  }
  if (share == 0) return 0;
  constexpr double kRounding = 1e-6;  // three thirds are one
  return std::max(1, static_cast<int>(share + kRounding));
}

}  // namespace cohort::internal
