#include "cohort/cluster/cluster_roles.h"

#include "cohort/cluster/known_jobs.h"

namespace cohort::internal {

std::optional<rpc::Role> role_in(const train::ClusterSpec& spec, const TaskId& task) {
  if (task.job == kOperatorJob) return rpc::Role::kOperator;
  const auto& jobs = spec.as_dict();
  const auto job = jobs.find(task.job);
  const bool is_in_spec = job != jobs.end() && job->second.contains(task.index);
  const bool may_be_outside = job == jobs.end() && task.index == 0;
  if (task.job == kChief && (is_in_spec || (may_be_outside && spec.has_job(kPs)))) {
    return spec.has_job(kPs) ? rpc::Role::kCoordinator : rpc::Role::kWorker;
  }
  if (task.job == kEvaluator && (is_in_spec || may_be_outside)) return rpc::Role::kEvaluator;
  if (task.job == kWorker && is_in_spec) return rpc::Role::kWorker;
  if (task.job == kPs && is_in_spec) return rpc::Role::kPs;
  return std::nullopt;
}

TaskId coordinating_task(const train::ClusterSpec& spec) {
  for (const char* job : {kChief, kWorker}) {
    if (spec.has_job(job)) return {job, spec.task_indices(job).front()};
  }
  return spec.tasks().front();
}

}  // namespace cohort::internal
