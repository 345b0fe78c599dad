#include "cohort/cluster/cluster_spec.h"

#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"

namespace cohort::train {
namespace {

using internal::quoted;
using internal::str;

ClusterSpec::Jobs checked(ClusterSpec::Jobs jobs) {
  for (const auto& [job, tasks] : jobs) {
    if (job.empty()) throw InvalidArgumentError("ClusterSpec: a job has an empty name");
    if (!tasks.empty() && tasks.begin()->first < 0) {
      throw InvalidArgumentError(str("ClusterSpec: job ", quoted(job), " has a task of index ",
                                     tasks.begin()->first, "; indices begin at 0"));
    }
  }
  return jobs;
}

bool is_sparse(const ClusterSpec::Tasks& tasks) {
  return tasks.empty() || tasks.rbegin()->first != static_cast<int>(tasks.size()) - 1;
}

// {0: 'a', 3: 'b'}, or ['a', 'b'].
void print(std::ostream& out, const ClusterSpec::Tasks& tasks) {
  const bool sparse = is_sparse(tasks);
  out << (sparse ? "{" : "[");
  const char* separator = "";
  for (const auto& [index, address] : tasks) {
    out << separator;
    if (sparse) out << index << ": ";
    out << quoted(address);
    separator = ", ";
  }
  out << (sparse ? "}" : "]");
}

template <class Names>
std::string listed(const Names& names) {
  internal::TextStream out;
  const char* separator = "";
  for (const auto& name : names) {
    out << separator << name;
    separator = ", ";
  }
  return *separator ? std::move(out).str() : "none";
}

}  // namespace

ClusterSpec::ClusterSpec(
    std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs) {
    const auto [entry, added] = jobs_.try_emplace(job);
    if (!added)
      throw InvalidArgumentError(str("ClusterSpec: job ", quoted(job), " is named twice"));
    for (const std::string& address : addresses) {
      entry->second.emplace(static_cast<int>(entry->second.size()), address);
    }
  }
  jobs_ = checked(std::move(jobs_));
}

ClusterSpec::ClusterSpec(Jobs jobs) : jobs_(checked(std::move(jobs))) {}

int ClusterSpec::num_tasks() const {
  size_t count = 0;
  for (const auto& [job, tasks] : jobs_) count += tasks.size();
  return static_cast<int>(count);
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : jobs_) names.push_back(job);
  return names;
}

bool ClusterSpec::has_job(std::string_view job) const { return jobs_.count(std::string(job)) > 0; }

const ClusterSpec::Tasks& ClusterSpec::tasks_of(const std::string& job) const {
  if (const auto found = jobs_.find(job); found != jobs_.end()) return found->second;
  throw InvalidArgumentError(
      str("ClusterSpec: there is no job ", quoted(job), "; jobs: ", listed(jobs())));
}

int ClusterSpec::num_tasks(const std::string& job) const {
  return static_cast<int>(tasks_of(job).size());
}

std::vector<int> ClusterSpec::task_indices(const std::string& job) const {
  std::vector<int> indices;
  for (const auto& [index, address] : tasks_of(job)) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& job, int index) const {
  const Tasks& tasks = tasks_of(job);
  if (const auto found = tasks.find(index); found != tasks.end()) return found->second;
  const std::string tasks_there =
      is_sparse(tasks) ? listed(task_indices(job)) : str("0 to ", tasks.size() - 1);
  throw InvalidArgumentError(
      str("ClusterSpec: job ", quoted(job), " has no task ", index, "; tasks: ", tasks_there));
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(const std::string& job) const {
  const Tasks& tasks = tasks_of(job);
  std::vector<std::optional<std::string>> addresses;
  if (!tasks.empty()) addresses.resize(static_cast<size_t>(tasks.rbegin()->first) + 1);
  for (const auto& [index, address] : tasks) addresses[static_cast<size_t>(index)] = address;
  return addresses;
}

std::vector<TaskId> ClusterSpec::tasks() const {
  std::vector<TaskId> ids;
  for (const auto& [job, tasks] : jobs_) {
    for (const auto& [index, address] : tasks) ids.push_back({job, index});
  }
  return ids;
}

std::string ClusterSpec::to_string() const { return str(*this); }

std::ostream& operator<<(std::ostream& out, const ClusterSpec& spec) {
  out << "ClusterSpec({";
  const char* separator = "";
  for (const auto& [job, tasks] : spec.as_dict()) {
    out << separator << quoted(job) << ": ";
    print(out, tasks);
    separator = ", ";
  }
  return out << "})";
}

}  // namespace cohort::train
