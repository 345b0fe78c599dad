#include "tools/launch_command.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/cluster/launch/free_ports.h"
#include "cohort/cluster/launch/launcher.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::tools {
namespace {

std::vector<int> numbers(const internal::FreePorts& ports) {
  std::vector<int> list;
  for (int i = 0; i < ports.size(); ++i) list.push_back(ports[i]);
  return list;
}

// Goes with this object, and with everything in it: private keys. Signals that would end the program
// before wait until it has gone; a launcher that runs meanwhile sees them.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    std::error_code error;
    path_ = std::filesystem::temp_directory_path(error) / "cohort_launch.XXXXXX";
    if (error || ::mkdtemp(path_.data()) == nullptr) {
      ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
      throw ResourceExhaustedError(internal::str("cannot make a folder for certificates, ", path_,
                                                 ": ", internal::errno_text(errno)));
    }
  }
  ~TemporaryDirectory() {
    std::error_code ignored;  // a file that stays behind is no reason to fail
    std::filesystem::remove_all(path_, ignored);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  sigset_t before_;
};

// Makes a certificate for each task, and tells the tasks where theirs are. `keep` the authority, for
// later certificates.
void secure(internal::JobPlan& plan, const std::string& directory, bool keep) {
  internal::security::CertificateRequest request{
      .cluster = "launch", .tasks = {}, .directory = directory, .keep_authority_key = keep};
  for (const internal::PlannedTask& task : plan.tasks) request.tasks.push_back(task.id);
  internal::security::make_certificates(request);
  for (internal::PlannedTask& task : plan.tasks) {
    const auto files = internal::security::credentials_in(directory, task.id);
    internal::set_variable(task.environment, "COHORT_CERTIFICATE_FILE", files.certificate_file);
    internal::set_variable(task.environment, "COHORT_KEY_FILE", files.key_file);
    internal::set_variable(task.environment, "COHORT_CA_FILE", files.ca_file);
  }
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
  std::optional<TemporaryDirectory> temporary;
  if (options.tls) {
    if (options.certificates.empty()) temporary.emplace();
    const std::string directory = temporary ? temporary->path() : options.certificates;
    secure(plan, std::filesystem::absolute(directory), !temporary);
  }
  if (options.dry_run) {
    internal::print_plan(plan, out);
    return 0;
  }
  const auto grace = std::chrono::duration<double>(options.grace_seconds);
  return internal::launch(plan,
                          {.restarts = options.restarts,
                           .restart_each = options.restart_each,
                           .grace = std::chrono::duration_cast<std::chrono::milliseconds>(grace),
                           .out = {STDOUT_FILENO, ::isatty(STDOUT_FILENO) == 1},
                           .err = {STDERR_FILENO, ::isatty(STDERR_FILENO) == 1},
                           .summary = true})
      .exit_code;
}

}  // namespace cohort::tools
