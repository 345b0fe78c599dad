// A task's knowledge when it forms a group with others: the argument of every backend that connects
// processes.
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/group_store.h"
#include "cohort/core/program/task_id.h"

namespace cohort::collective {

struct GroupMember {
  // Names the group within the cluster: a strategy has one, and more for purposes of its own.
  std::string group = "workers";
  // Increases each time the group forms again, so that what an earlier group left in the store does
  // no harm.
  int64_t generation = 0;
  int rank = 0;
  std::vector<TaskId> tasks = {};  // in the order of ranks
  std::shared_ptr<GroupStore> store = nullptr;
  // The time by which all tasks must have come.
  std::chrono::steady_clock::time_point deadline = {};
  // Called every 100 ms while a thread waits for the group to form, on that thread. Throws if the
  // group cannot form any more, because one of its tasks is lost, for example.
  std::function<void()> check = [] {};
  // A call that waits for longer than this warns, again and again, and names the tasks for which it
  // waits.
  std::chrono::nanoseconds slow_after = std::chrono::seconds(10);

  // The GPU on which this task adds up its replicas' values, for NCCL; none: in the host's memory.
  std::optional<c10::Device> gpu = {};

  int size() const { return static_cast<int>(tasks.size()); }
  const TaskId& task(int of_rank) const { return tasks[static_cast<size_t>(of_rank)]; }
  // "collective/workers/0/address/1": where the task of `of_rank` leaves a value for the others.
  std::string key(std::string_view what, int of_rank) const;
  // "collective/workers/0/failure": the same of the group as a whole.
  std::string key(std::string_view what) const;
};

}  // namespace cohort::collective
