// One process: started, signalled, waited for.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/files/unique_fd.h"

namespace cohort::internal {

struct SpawnOptions {
  std::vector<std::string> arguments;    // after the program's name
  std::vector<std::string> environment;  // all of it: "NAME=value"
  std::string log_path;                  // stdout and stderr are appended to it
  int report_fd = -1;                    // what the process gets as kReportFd
};

// How a process ended: exactly one of the two is set.
struct ExitStatus {
  std::optional<int> exit_code = std::nullopt;
  std::optional<int> signal = std::nullopt;
};

// Thread safety: none.
class ChildProcess {
 public:
  // Starts this program's own binary again (posix_spawn: after a bare fork neither gRPC's nor
  // libtorch's threads are there). Stdin is empty, no descriptor but 0 to 3 is inherited that is
  // marked close-on-exec, signals have their default handlers.
  // Errors: ResourceExhausted (no process, memory or descriptor to be had), InvalidArgument
  // (arguments too long), PermissionDenied or NotFound (the log file).
  explicit ChildProcess(const SpawnOptions& options);
  // Kills and reaps it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends.
  int pidfd() const { return pidfd_.get(); }
  // Whether it could be sent: not to a process that was reaped.
  bool send_signal(int signal);
  // The status if it has ended, without waiting. Reaps it.
  std::optional<ExitStatus> poll();
  // SIGKILL, then waits for the end.
  ExitStatus kill_and_reap();

 private:
  ExitStatus reap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace cohort::internal
