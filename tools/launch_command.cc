#include "tools/launch_command.h"

#include <unistd.h>

#include <chrono>
#include <ostream>

#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/launch/launcher.h"

namespace cohort::tools {
namespace {

std::vector<int> numbers(const internal::FreePorts& ports) {
  std::vector<int> list;
  for (int i = 0; i < ports.size(); ++i) list.push_back(ports[i]);
  return list;
}

}  // namespace

int launch_job(const LaunchCommandOptions& options, std::ostream& out, std::ostream& err) {
  internal::JobOptions job = options.job;
  job.program = options.command.at(0);
  job.arguments.assign(options.command.begin() + 1, options.command.end());
  internal::JobPlan plan = internal::make_plan(job, internal::usable_cores());
  // Held until the job is over, so that no other program gets a port of a task that restarts.
  const internal::FreePorts ports = internal::pick_free_ports(internal::num_servers(plan));
  internal::set_addresses(plan, numbers(ports));
  if (options.dry_run) {
    internal::print_plan(plan, out);
    return 0;
  }
  const auto grace = std::chrono::duration<double>(options.grace_seconds);
  const internal::LaunchResult result =
      internal::launch(plan, {.restarts = options.restarts,
                              .grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace),
                              .out = {STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1},
                              .err = {STDERR_FILENO, ::isatty(STDERR_FILENO) == 1}});
  internal::print_summary(result, err);
  return result.exit_code;
}

}  // namespace cohort::tools
