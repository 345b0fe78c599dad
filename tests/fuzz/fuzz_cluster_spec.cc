// Lines "job index address" make a spec, of any bytes: what may run has valid addresses in known
// jobs, and what the spec says of itself agrees. Other lines are Slurm's lists.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "cohort/cluster/address.h"
#include "cohort/cluster/cluster_check.h"
#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/multi_worker.h"
#include "cohort/cluster/resolvers/slurm_lists.h"
#include "cohort/core/error.h"

namespace {

using cohort::TaskId;
using cohort::train::ClusterSpec;

void require(bool holds, std::string_view property) {
  if (holds) return;
  std::cerr << "fuzz_cluster_spec: broken property: " << property << '\n';
  std::abort();
}

// Whether `call` refuses with an InvalidArgument on one line.
template <class Call>
bool refuses(Call&& call) {
  try {
    call();
    return false;
  } catch (const cohort::InvalidArgumentError& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "an error is one line");
    return true;
  }
}

void check_lists(const std::string& line) {
  refuses([&] {
    const auto hosts = cohort::internal::expand_nodelist(line);
    require(!hosts.empty() && hosts.size() <= 65536, "a nodelist has some hosts, not too many");
    for (const std::string& host : hosts) require(!host.empty(), "a host has a name");
  });
  refuses([&] {
    require(cohort::internal::expand_counts(line).size() <= 65536, "not too many counts");
  });
}

ClusterSpec::Jobs read_jobs(const std::string& text) {
  ClusterSpec::Jobs jobs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string job;
    int index = 0;
    std::string address;
    // An index takes a place for each hole before it.
    if (words >> job >> index && std::getline(words >> std::ws, address) && index < 100'000) {
      jobs[job].emplace(index, address);
    } else {
      check_lists(line);
    }
  }
  return jobs;
}

void check_spec(const ClusterSpec& spec) {
  size_t count = 0;
  for (const std::string& job : spec.jobs()) {
    require(spec.has_job(job), "a job that is listed is there");
    for (const int index : spec.task_indices(job)) {
      require(spec.job_tasks(job)[static_cast<size_t>(index)] == spec.task_address(job, index),
              "a task has one address");
      ++count;
    }
  }
  require(spec.tasks().size() == count, "all tasks are listed");
  require(spec.to_string().find('\n') == std::string::npos, "a spec is printed on one line");
}

void check_what_may_run(const ClusterSpec& spec, const TaskId& self) {
  if (refuses([&] { cohort::internal::check_cluster(spec, self); })) return;
  for (const TaskId& task : spec.tasks()) {
    require(cohort::internal::is_known_job(task.job), "what may run has known jobs");
    const auto address = cohort::internal::parse_address(spec.task_address(task.job, task.index));
    require(address.is_unix() || (address.port >= 1 && address.port <= 65535), "a port is one");
  }
  cohort::internal::validate_cluster_spec(spec, self);
  if (self.job == "worker" || self.job == "chief") {
    const int id = cohort::internal::id_in_cluster(spec, self);
    require(id >= 0 && id < cohort::internal::worker_count(spec, self.job),
            "a worker has a number");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ClusterSpec::Jobs jobs = read_jobs(std::string(reinterpret_cast<const char*>(data), size));
  std::optional<ClusterSpec> spec;
  if (refuses([&] { spec.emplace(jobs); })) return 0;
  check_spec(*spec);
  const auto tasks = spec->tasks();
  check_what_may_run(*spec, tasks.empty() ? TaskId{"worker", 0} : tasks.front());
  return 0;
}
