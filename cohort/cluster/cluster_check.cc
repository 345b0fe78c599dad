#include "cohort/cluster/cluster_check.h"

#include <map>

#include "cohort/cluster/address.h"
#include "cohort/cluster/config_error.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

std::string job_path(const std::string& job) { return "cluster" + json_member(job); }

class Check {
 public:
  Check(const train::ClusterSpec& spec, const ClusterCheckOptions& options)
      : spec_(spec), options_(options) {}

  void jobs() const {
    for (const auto& [job, tasks] : spec_.as_dict()) {
      const std::string path = job_path(job);
      if (!is_known_job(job)) fail(path, str("is no known job; jobs are ", kKnownJobsText));
      if (tasks.empty()) fail(path, "has no tasks; leave the job out");
      if ((job == kChief || job == kEvaluator) && tasks.size() > 1) {
        fail(path, str("has ", tasks.size(), " tasks; there must be at most one '", job, "'"));
      }
      int index = 0;
      for (const auto& [present, address] : tasks) {
        if (present != index) {
          fail(path + json_element(index), "is missing; indices go from 0 without holes");
        }
        ++index;
      }
    }
  }

  void addresses() {
    for (const TaskId& task : spec_.tasks()) {
      const std::string& text = spec_.task_address(task.job, task.index);
      const std::string path = job_path(task.job) + json_element(task.index);
      const Address address = parse(path, text);
      if (is_unspecified(address) && spec_.num_tasks() > 1) {
        fail(path, str(quoted_start(text),
                       " is no address that other tasks can reach; write this task's own"));
      }
      const auto [other, added] = seen_.emplace(to_string(canonical(address)), path);
      if (!added) {
        fail(path, str(quoted_start(text), " is the address of ", other->second,
                       ", too; every task needs its own"));
      }
    }
  }

  void self(const TaskId& task) const {
    if (!is_known_job(task.job)) {
      fail("task.type", str(quoted_start(task.job), " is no known job; jobs are ", kKnownJobsText));
    }
    if (task.index < 0) fail("task.index", str("is ", task.index, "; indices begin at 0"));
    if (!spec_.has_job(task.job)) {
      if (task.job == kEvaluator) {
        if (task.index > 0) fail("task.index", str("is ", task.index, "; there is one evaluator"));
        return;
      }
      fail("task.type",
           str(quoted(task.job), " is no job of the cluster, which is ", shortened_spec()));
    }
    const int count = spec_.num_tasks(task.job);
    if (task.index >= count) {
      fail("task.index", str("is ", task.index, "; job ", quoted(task.job), " has ", count,
                             count == 1 ? " task" : " tasks"));
    }
  }

  [[noreturn]] void fail(std::string_view path, std::string_view problem) const {
    throw_config_error(options_.source, path, problem);
  }

 private:
  Address parse(const std::string& path, const std::string& text) const {
    try {
      return parse_address(text);
    } catch (const InvalidArgumentError& error) {
      fail(path, error.what());
    }
  }

  // Describes the cluster by its jobs and their numbers of tasks, so that the text of a large
  // cluster stays short.
  std::string shortened_spec() const {
    std::string jobs;
    for (const auto& [job, tasks] : spec_.as_dict()) {
      jobs += str(jobs.empty() ? "" : ", ", job, " (", tasks.size(), ")");
    }
    return jobs.empty() ? "empty" : jobs;
  }

  const train::ClusterSpec& spec_;
  const ClusterCheckOptions& options_;
  std::map<std::string, std::string> seen_;  // paths by canonical address
};

std::optional<TaskId> self_of(const distribute::cluster_resolver::ClusterResolver& resolver) {
  const std::optional<std::string> type = resolver.task_type();
  const std::optional<int> index = resolver.task_id();
  if (type && !index) {
    throw_config_error(resolver.source(), "task.index", "is missing beside task.type");
  }
  if (index && !type) {
    throw_config_error(resolver.source(), "task.type", "is missing beside task.index");
  }
  if (!type) return std::nullopt;
  return TaskId{*type, *index};
}

}  // namespace

void check_cluster(const train::ClusterSpec& spec, const std::optional<TaskId>& self,
                   const ClusterCheckOptions& options) {
  Check check(spec, options);
  check.jobs();
  check.addresses();
  if (self && self->job == kEvaluator) return check.self(*self);
  if (spec.empty()) {
    // A name that nobody knows: the cluster was meant to be there.
    if (self) check.fail("cluster", str("is missing, but this is ", *self));
    if (!options.may_be_empty) check.fail("cluster", "is empty: there is no task to run");
    return;
  }
  if (!self) check.fail("task", "is missing: which task of the cluster is this?");
  check.self(*self);
}

CheckedCluster check_cluster(const distribute::cluster_resolver::ClusterResolver& resolver,
                             bool may_be_empty) {
  CheckedCluster checked{.spec = resolver.cluster_spec(), .self = self_of(resolver)};
  if (checked.spec.empty() && resolver.rendezvous()) return checked;
  check_cluster(checked.spec, checked.self,
                {.source = resolver.source(), .may_be_empty = may_be_empty});
  return checked;
}

}  // namespace cohort::internal
