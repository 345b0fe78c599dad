#include "cohort/parameter_server/closures/worker_side.h"

#include "cohort/parameter_server/closures/worker_routines.h"

namespace cohort::internal {

Structure WorkerSide::call(const std::string& function, const Structure& arguments) const {
  if (const auto captured = functions_.captured(function)) return captured(arguments);
  if (const WorkerRoutine routine = worker_routine(function)) return routine(*this, arguments);
  return strategy_.named_functions().call_here(function, arguments);
}

distribute::InputContext WorkerSide::input_context(int worker) const {
  return {.num_input_pipelines = cluster().num_workers(),
          .input_pipeline_id = worker,
          .num_replicas_in_sync = num_local_replicas()};
}

}  // namespace cohort::internal
