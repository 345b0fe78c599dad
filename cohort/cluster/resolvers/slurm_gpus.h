// Finds which of a host's GPUs belong to one of the tasks on it.
#pragma once

#include <optional>
#include <string>

#include "cohort/cluster/resolvers/process_variables.h"

namespace cohort::internal {

struct GpuRequest {
  std::optional<int> per_node;  // nothing: those that there are
  std::optional<int> per_task;  // nothing: an equal part of them
  int tasks_on_host = 1;
  int local_index = 0;  // this task's among them
};

struct GpuShare {
  int count = 0;
  // For CUDA_VISIBLE_DEVICES; nothing where it should stay as it is.
  std::optional<std::string> visible = std::nullopt;
};

// Errors: FailedPrecondition (tasks of the host ask for more than it has); InvalidArgument.
GpuShare share_gpus(const GpuRequest& request, const VariableReader& variables);

}  // namespace cohort::internal
