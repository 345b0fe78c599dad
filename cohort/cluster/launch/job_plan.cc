#include "cohort/cluster/launch/job_plan.h"

#include <sched.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/core/error.h"
#include "cohort/core/program/elastic_workers.h"

namespace cohort::internal {
namespace {

constexpr int kMostTasks = 1024;  // of a job, on this one machine

void check_number(const char* option, int value) {
  if (value >= 0) return;
  throw InvalidArgumentError(str(option, " is ", value, ", but cannot be negative"));
}

void check_count(const char* option, int value) {
  check_number(option, value);
  if (value <= kMostTasks) return;
  throw InvalidArgumentError(
      str(option, " is ", value, ", but one machine runs at most ", kMostTasks, " such tasks"));
}

void add_tasks(JobPlan& plan, const char* job, int count) {
  for (int i = 0; i < count; ++i) plan.tasks.push_back({.id = {job, i}});
}

void check_elastic(const JobOptions& options) {
  if (options.min_workers == 0) return;
  const std::string range = str("--workers ", options.min_workers, ":", options.num_workers);
  if (options.min_workers < 1 || options.min_workers > options.num_workers) {
    throw InvalidArgumentError(str(range, ": the least number must be from 1 to the most"));
  }
  if (options.chief || options.num_ps > 0) {
    throw InvalidArgumentError(str(range,
                                   " is for a job of workers that train in step; leave away ",
                                   options.num_ps > 0 ? "--ps" : "--chief"));
  }
}

// Neighbouring cores for neighbouring tasks, so that a task's cores share a cache where any do.
void divide_cores(JobPlan& plan, const std::vector<int>& usable, int cores_per_task) {
  const size_t num_tasks = plan.tasks.size();
  if (cores_per_task == 0 && usable.size() < num_tasks) return;
  if (cores_per_task > 0 && static_cast<size_t>(cores_per_task) * num_tasks > usable.size()) {
    throw InvalidArgumentError(str("--cores-per-task ", cores_per_task, " asks for ",
                                   static_cast<size_t>(cores_per_task) * num_tasks, " cores for ",
                                   num_tasks, " tasks, but only ", usable.size(),
                                   " can be used; leave it away to divide them"));
  }
  auto next = usable.begin();
  for (size_t i = 0; i < num_tasks; ++i) {
    const size_t share = usable.size() / num_tasks + (i < usable.size() % num_tasks ? 1 : 0);
    const auto count = static_cast<std::ptrdiff_t>(
        cores_per_task > 0 ? static_cast<size_t>(cores_per_task) : share);
    plan.tasks[i].cores.assign(next, next + count);
    next += count;
  }
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string PlannedTask::label() const { return str(id.job, ":", id.index); }

JobPlan make_plan(const JobOptions& options, const std::vector<int>& usable_cores) {
  check_count("--workers", options.num_workers);
  check_count("--ps", options.num_ps);
  check_number("--cores-per-task", options.cores_per_task);
  check_elastic(options);
  JobPlan plan{.program = find_program(options.program),
               .arguments = options.arguments,
               .tasks = {},
               .min_workers = options.min_workers};
  if (options.chief || options.num_ps > 0) add_tasks(plan, "chief", 1);
  add_tasks(plan, "worker", options.num_workers);
  add_tasks(plan, "ps", options.num_ps);
  if (plan.tasks.empty()) {
    throw InvalidArgumentError("the job has no task; say how many: --workers 2");
  }
  if (options.num_ps > 0 && options.num_workers == 0) {
    throw InvalidArgumentError("a job with --ps needs workers, too: --workers 2");
  }
  if (options.evaluator) add_tasks(plan, "evaluator", 1);
  divide_cores(plan, usable_cores, options.cores_per_task);
  return plan;
}

int num_servers(const JobPlan& plan) {
  return static_cast<int>(std::count_if(plan.tasks.begin(), plan.tasks.end(), [](const auto& task) {
    return task.id.job != "evaluator";
  }));
}

void set_addresses(JobPlan& plan, const std::vector<int>& ports) {
  nlohmann::ordered_json cluster;
  auto port = ports.begin();
  for (PlannedTask& task : plan.tasks) {
    if (task.id.job == "evaluator") continue;
    task.address = str("127.0.0.1:", *port++);
    cluster[task.id.job].push_back(task.address);
  }
  const auto num_workers =
      std::count_if(plan.tasks.begin(), plan.tasks.end(),
                    [](const PlannedTask& task) { return task.id.job == "worker"; });
  for (PlannedTask& task : plan.tasks) {
    const nlohmann::ordered_json config = {
        {"cluster", cluster}, {"task", {{"type", task.id.job}, {"index", task.id.index}}}};
    set_variable(task.environment, "TF_CONFIG", config.dump());
    if (plan.min_workers == 0) continue;
    set_variable(task.environment, kElasticWorkersVariable,
                 str(plan.min_workers, ":", num_workers));
  }
}

void print_plan(const JobPlan& plan, std::ostream& out) {
  for (const PlannedTask& task : plan.tasks) {
    out << task.label() << '\n' << "  run: " << shell_word(plan.program);
    for (const std::string& argument : plan.arguments) out << ' ' << shell_word(argument);
    out << "\n  cores:";
    for (int core : task.cores) out << ' ' << core;
    if (task.cores.empty()) out << " all";
    out << '\n';
    for (const std::string& variable : task.environment) out << "  " << variable << '\n';
  }
}

std::vector<int> usable_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(mask), &mask) != 0) return cores;  // more than 1,024 cores
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &mask)) cores.push_back(core);
  }
  return cores;
}

}  // namespace cohort::internal
