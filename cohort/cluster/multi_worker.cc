#include "cohort/cluster/multi_worker.h"

#include <algorithm>

#include "cohort/cluster/config_error.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

void check_at_most_one(const train::ClusterSpec& spec, const char* job) {
  const int count = task_count(spec, job);
  if (count > 1) {
    throw InvalidArgumentError(
        str("There must be at most one '", job, "' task; the cluster has ", count, ": ", spec));
  }
}

void check_self(const train::ClusterSpec& spec, const TaskId& self) {
  if (!spec.has_job(self.job)) {
    if (self.job == kEvaluator) return;
    throw InvalidArgumentError(
        str("`task_type` ", quoted_start(self.job), " not found in cluster_spec: ", spec));
  }
  const auto& tasks = spec.as_dict().at(self.job);
  if (!tasks.contains(self.index)) {
    throw InvalidArgumentError(str("The `task_id` ", self.index, " is none of job ",
                                   quoted(self.job), "'s ", tasks.size(), " tasks: ", spec));
  }
}

}  // namespace

void validate_cluster_spec(const train::ClusterSpec& spec, const TaskId& self) {
  for (const auto& [job, tasks] : spec.as_dict()) {
    if (is_known_job(job)) continue;
    throw InvalidArgumentError(
        str("Disallowed task type found in cluster spec: ", quoted_start(job), "; jobs are ",
            kKnownJobsText, "; the cluster spec is ", spec));
  }
  if (!is_known_job(self.job)) {
    throw InvalidArgumentError(
        str("Unrecognized task_type: ", quoted_start(self.job), "; jobs are ", kKnownJobsText));
  }
  check_at_most_one(spec, kChief);
  check_at_most_one(spec, kEvaluator);
  check_self(spec, self);
}

int task_count(const train::ClusterSpec& spec, const std::string& job) {
  return spec.has_job(job) ? spec.num_tasks(job) : 0;
}

bool is_chief(const train::ClusterSpec& spec, const TaskId& self) {
  validate_cluster_spec(spec, self);
  if (self.job == kChief || self.job == kEvaluator) return true;
  return self == TaskId{kWorker, 0} && task_count(spec, kChief) == 0;
}

std::string collective_leader(const train::ClusterSpec& spec, const TaskId& self) {
  if (spec.empty()) return "";
  validate_cluster_spec(spec, self);
  const std::optional<TaskId> leader = coordination_leader(spec);
  if (self.job == kEvaluator || !leader) return "";
  return str("/job:", leader->job, "/replica:0/task:", leader->index);
}

std::optional<TaskId> coordination_leader(const train::ClusterSpec& spec) {
  if (task_count(spec, kChief) > 0) return TaskId{kChief, 0};
  if (task_count(spec, kWorker) > 0) return TaskId{kWorker, 0};
  return std::nullopt;
}

int worker_count(const train::ClusterSpec& spec, const std::string& job) {
  validate_cluster_spec(spec, {job, 0});
  // Alone, whether or not the spec has it.
  if (job == kEvaluator) return std::max(1, task_count(spec, kEvaluator));
  if (job == kPs) throw InvalidArgumentError("Unexpected `task_type` 'ps': a ps does not train");
  return task_count(spec, kChief) + task_count(spec, kWorker);
}

int id_in_cluster(const train::ClusterSpec& spec, const TaskId& self) {
  validate_cluster_spec(spec, self);
  if (self.job == kPs) {
    throw InvalidArgumentError("There is no id for task_type 'ps': a ps does not train");
  }
  return self.job == kWorker ? self.index + task_count(spec, kChief) : self.index;
}

}  // namespace cohort::internal
