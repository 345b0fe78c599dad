// The tasks of a cluster and their addresses: jobs by name, tasks by index.
//
//   tf::train::ClusterSpec spec({{"worker", {"10.0.0.1:2222", "10.0.0.2:2222"}},
//                                {"ps", {"10.0.0.3:2222"}}});
//   spec.num_tasks("worker");        // 2
//   spec.task_address("ps", 0);      // "10.0.0.3:2222"
//   std::cout << spec;               // ClusterSpec({'ps': ['10.0.0.3:2222'], 'worker': [...]})
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/program/task_id.h"

namespace cohort::train {

// Equal where jobs, indices and addresses are. A job whose indices have holes is sparse. Addresses
// are any text here: Server and the strategies check them before they open a socket.
// Thread safety: immutable.
class COHORT_API ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;  // address by index
  using Jobs = std::map<std::string, Tasks>;

  // No tasks.
  ClusterSpec() = default;
  // Errors of both: InvalidArgument (an empty job name, a job named twice, a negative index).
  ClusterSpec(std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs);
  explicit ClusterSpec(Jobs jobs);

  bool empty() const { return jobs_.empty(); }
  explicit operator bool() const { return !empty(); }
  const Jobs& as_dict() const { return jobs_; }
  // The number of tasks of all jobs together.
  int num_tasks() const;
  // In alphabetical order.
  std::vector<std::string> jobs() const;
  bool has_job(std::string_view job) const;

  // Errors of all four: InvalidArgument (no such job or task; names those that there are).
  int num_tasks(const std::string& job) const;
  std::vector<int> task_indices(const std::string& job) const;
  const std::string& task_address(const std::string& job, int index) const;
  // One entry up to the highest index; nothing for holes.
  std::vector<std::optional<std::string>> job_tasks(const std::string& job) const;

  // All tasks, by job and index.
  std::vector<TaskId> tasks() const;
  // The spec as Python prints it: a list for each job, a dict for a sparse job, jobs in
  // alphabetical order.
  std::string to_string() const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  const Tasks& tasks_of(const std::string& job) const;

  Jobs jobs_;
};
COHORT_API std::ostream& operator<<(std::ostream& out, const ClusterSpec& spec);

}  // namespace cohort::train
