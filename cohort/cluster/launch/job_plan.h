// The plan of a job that `cohort launch` starts: tasks, addresses, cores, and environment.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "cohort/core/program/task_id.h"

namespace cohort::internal {

struct JobOptions {
  std::string program = "";                 // as a shell finds it
  std::vector<std::string> arguments = {};  // the same for every task
  int num_workers = 0;
  // Not 0: the job is elastic, and goes on while so many workers are left. Needs a job of workers
  // alone, or with an evaluator.
  int min_workers = 0;
  int num_ps = 0;
  // A chief before the workers. A job with ps has one in any case: its coordinator.
  bool chief = false;
  bool evaluator = false;
  int cores_per_task = 0;  // 0: the cores that this process may use, divided among the tasks
};

struct PlannedTask {
  TaskId id;
  std::string address = "";                   // empty: the evaluator's, which serves nobody
  std::vector<int> cores = {};                // empty: no restriction
  std::vector<std::string> environment = {};  // beside the launcher's own: "NAME=value"

  // "worker:1", as lines of its output are marked.
  std::string label() const;
};

struct JobPlan {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::vector<PlannedTask> tasks;  // chief, workers, ps, evaluator
  int min_workers = 0;             // as JobOptions has it
};

// The tasks without addresses and environment. `usable_cores`: the numbers of the cores that may be
// used. With fewer cores than tasks all tasks share all cores.
// Errors: InvalidArgument (no task, a negative number; more cores a task than there are; an elastic
// job with a chief or ps), NotFound or PermissionDenied (the program).
JobPlan make_plan(const JobOptions& options, const std::vector<int>& usable_cores);

// Gives the tasks that serve others the ports of 127.0.0.1 in order, and every task its TF_CONFIG;
// tasks of an elastic job also learn the numbers of workers. `ports` holds num_servers(plan) of
// them.
int num_servers(const JobPlan& plan);
void set_addresses(JobPlan& plan, const std::vector<int>& ports);

// A paragraph a task: the command, the cores, the environment.
void print_plan(const JobPlan& plan, std::ostream& out);

// The cores that this process may run on.
std::vector<int> usable_cores();

}  // namespace cohort::internal
