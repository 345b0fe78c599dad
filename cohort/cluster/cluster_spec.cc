#include "cohort/cluster/cluster_spec.h"

#include <algorithm>
#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::train {
namespace {

ClusterSpec::Jobs checked(ClusterSpec::Jobs jobs) {
  for (const auto& [job, tasks] : jobs) {
    if (job.empty()) throw InvalidArgumentError("ClusterSpec: a job has an empty name");
    if (!tasks.empty() && tasks.begin()->first < 0) {
      throw InvalidArgumentError(
          internal::str("ClusterSpec: job ", internal::quoted(job), " has a task of index ",
                        tasks.begin()->first, "; indices begin at 0"));
    }
  }
  return jobs;
}

}  // namespace

ClusterSpec::ClusterSpec(
    std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs) {
    Tasks& tasks = jobs_[job];
    for (const std::string& address : addresses) {
      tasks.emplace(static_cast<int>(tasks.size()), address);
    }
  }
  jobs_ = checked(std::move(jobs_));
}

ClusterSpec::ClusterSpec(Jobs jobs) : jobs_(checked(std::move(jobs))) {}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

bool ClusterSpec::has_job(std::string_view job) const { return jobs_.count(std::string(job)) > 0; }

}  // namespace cohort::train
