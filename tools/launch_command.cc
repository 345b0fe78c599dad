#include "tools/launch_command.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <ostream>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/launch/launcher.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/core/files/memory_file.h"
#include "cohort/core/host/cgroups.h"

namespace cohort::tools {
namespace {

std::vector<int> numbers(const internal::FreePorts& ports) {
  std::vector<int> list;
  for (int i = 0; i < ports.size(); ++i) list.push_back(ports[i]);
  return list;
}

// Where a task finds its certificate.
void tell_credentials(internal::PlannedTask& task, const distribute::Credentials& files) {
  internal::set_variable(task.environment, "COHORT_CERTIFICATE_FILE", files.certificate_file);
  internal::set_variable(task.environment, "COHORT_KEY_FILE", files.key_file);
  internal::set_variable(task.environment, "COHORT_CA_FILE", files.ca_file);
}

std::vector<TaskId> ids_of(const internal::JobPlan& plan) {
  std::vector<TaskId> tasks;
  for (const internal::PlannedTask& task : plan.tasks) tasks.push_back(task.id);
  return tasks;
}

constexpr char kCluster[] = "launch";

// Makes certificates in `directory`, with an authority for later ones, and they stay there.
void secure_in(const std::string& directory, internal::JobPlan& plan) {
  internal::security::make_certificates(
      {.cluster = kCluster, .tasks = ids_of(plan), .directory = directory});
  for (internal::PlannedTask& task : plan.tasks) {
    tell_credentials(task, internal::security::credentials_in(directory, task.id));
  }
}

// Makes certificates for this run. Their keys are on no disk, where they would outlive a launcher that is killed.
std::vector<internal::MemoryFile> secure_this_run(internal::JobPlan& plan) {
  const internal::security::CertificateTexts texts =
      internal::security::make_certificate_texts(kCluster, ids_of(plan));
  std::vector<internal::MemoryFile> files;
  files.emplace_back("ca.pem", texts.ca_pem);
  const std::string ca_file = files.front().path();
  for (size_t i = 0; i < plan.tasks.size(); ++i) {
    const std::string name = plan.tasks[i].label();
    const std::string& key = files.emplace_back(name + ".key", texts.tasks[i].key_pem).path();
    distribute::Credentials credentials{.key_file = key, .ca_file = ca_file};
    credentials.certificate_file =
        files.emplace_back(name + ".pem", texts.tasks[i].certificate_pem).path();
    tell_credentials(plan.tasks[i], credentials);
  }
  return files;
}

}  // namespace

int launch_job(const LaunchCommandOptions& options, std::ostream& out) {
  internal::JobOptions job = options.job;
  job.program = options.command.at(0);
  job.arguments.assign(options.command.begin() + 1, options.command.end());
  internal::JobPlan plan = internal::make_plan(job, internal::usable_cores());
  // Held until the job is over, so that no other program gets a port of a task that restarts.
  const internal::FreePorts ports = internal::pick_free_ports(internal::num_servers(plan));
  internal::set_addresses(plan, numbers(ports));
  std::vector<internal::MemoryFile> held;  // as the ports
  if (options.tls && options.certificates.empty()) held = secure_this_run(plan);
  if (options.tls && !options.certificates.empty()) {
    secure_in(std::filesystem::absolute(options.certificates), plan);
  }
  if (options.dry_run) {
    internal::print_plan(plan, out);
    return 0;
  }
  const internal::Cgroups groups;
  const auto grace = std::chrono::duration<double>(options.grace_seconds);
  return internal::launch(plan,
                          {.restarts = options.restarts,
                           .restart_each = options.restart_each,
                           .grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace),
                           .memory_kills = {.count = [&groups] { return groups.oom_kills(); },
                                            .limit_bytes = groups.memory_limit()},
                           .out = {STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1},
                           .err = {STDERR_FILENO, ::isatty(STDERR_FILENO) == 1},
                           .summary = true})
      .exit_code;
}

}  // namespace cohort::tools
