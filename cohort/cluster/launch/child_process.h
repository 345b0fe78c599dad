// One process: started, signalled, waited for.
//
//   ChildProcess child({.program = "/usr/bin/env", .arguments = {"env"}, .stdout_fd = pipe});
//   poll for POLLIN on child.pidfd();
//   child.poll()->exit_code;
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

struct SpawnOptions {
  std::string program = "";                   // empty: this program's own binary
  std::vector<std::string> arguments = {};    // after the program's name
  std::vector<std::string> environment = {};  // all of it: "NAME=value"
  // The descriptors that the process gets as stdout, stderr and descriptor 3. If the last is
  // negative, 3 stays closed.
  int stdout_fd = -1;
  int stderr_fd = -1;
  int extra_fd = -1;
  // Makes the process the first of a group of its own: a terminal's Ctrl-C does not reach it, and
  // signals sent here also reach the processes that it has started.
  bool own_group = false;
  // The process gets SIGKILL when the thread that started it ends, however that ends.
  bool dies_with_parent = false;
  std::vector<int> cores = {};  // it may run on these alone; empty: on this thread's
  int network_fd = -1;          // of the network namespace it belongs to; negative: this process's
};

// How a process ended: at most one of the two is set; neither where somebody else reaped the
// process, so that nobody can say.
struct ExitStatus {
  std::optional<int> exit_code = std::nullopt;
  std::optional<int> signal = std::nullopt;

  bool ok() const { return exit_code == 0; }
  // The exit code as a shell reports it: 128 + n for signal n; 1 if the status is not known.
  int shell_code() const { return signal ? 128 + *signal : exit_code.value_or(1); }
};
// "was ended by SIGKILL", "exited with 7": goes on after a task's name.
std::string describe(const ExitStatus& status);

// "SIGKILL": the name as users write it.
std::string signal_name(int signal);
// The program that a shell would run by this name: itself where it has a '/', else the first
// executable of that name in PATH. Errors: NotFound (says where it looked), PermissionDenied (no
// executable file), InvalidArgument (no name).
std::string find_program(const std::string& name);
// This process's environment, "NAME=value".
std::vector<std::string> own_environment();
// Sets a variable of such a list.
void set_variable(std::vector<std::string>& environment, std::string_view name,
                  std::string_view value);

// Thread safety: none.
class ChildProcess {
 public:
  // Starts a fresh program (after a bare fork neither gRPC's nor libtorch's threads would be
  // there). Stdin is empty, signals have their default handlers; of this process's other
  // descriptors it inherits those that are not marked close-on-exec. A SIGCHLD that this process
  // ignores, as it may from its own parent, gets its default: else the kernel would throw exit
  // codes away.
  // Errors: NotFound or PermissionDenied (the program), InvalidArgument (arguments too long, no
  // such core), ResourceExhausted (no process, memory or descriptor to be had).
  explicit ChildProcess(const SpawnOptions& options);
  // Kills and reaps it; with own_group, kills its group.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Becomes readable when the process ends.
  int pidfd() const { return pidfd_.get(); }
  // To the group where it has its own. Whether it could be sent: not to a process that was reaped.
  bool send_signal(int signal);
  // Whether it has ended; it is not reaped yet.
  bool has_ended();
  // Whether processes of its own group live on after it; until it is reaped.
  bool leaves_others() const;
  // The status if it has ended, without waiting. Reaps it, and kills what is left of its own group.
  std::optional<ExitStatus> poll();
  // SIGKILL, then waits for the end.
  ExitStatus kill_and_reap();

 private:
  ExitStatus reap();

  pid_t pid_ = -1;
  bool own_group_ = false;
  UniqueFd pidfd_;
  std::optional<ExitStatus> status_;
};

}  // namespace cohort::internal
