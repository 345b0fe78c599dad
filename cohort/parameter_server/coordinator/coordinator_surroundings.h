// The cluster as a coordinator needs it: all that tests replace.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/core/program/task_id.h"
#include "cohort/parameter_server/coordinator/coordinator_numbers.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

class CoordinatorCore;

struct CoordinatorSurroundings {
  int num_workers = 0;
  int num_ps = 0;
  std::function<std::shared_ptr<rpc::Channel>(const TaskId&)> channel;
  int64_t generation = 1;  // of this coordinator, which has taken the ps tasks
  CoordinatorNumbers first = {};
  std::function<std::string()> last_checkpoint = nullptr;
  std::function<std::string(const TaskId& task)> failure_told_by = nullptr;
  std::function<void(const std::weak_ptr<CoordinatorCore>&)> on_start = nullptr;
  std::function<void(const CoordinatorNumbers& next)> on_stop = nullptr;
  // See closures/served_task.h; null: no worker is in this process.
  std::function<std::string(SessionId below, std::chrono::steady_clock::time_point deadline)>
      end_functions = nullptr;
  // Makes a number known to `cohort cluster status`.
  std::function<void(const std::string& name, double value)> set_figure = nullptr;
  rpc::Clock* clock = nullptr;  // null: the real one
};

}  // namespace cohort::internal
