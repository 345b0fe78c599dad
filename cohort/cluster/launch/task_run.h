// One task of a launched job: its process, from start to restart, and its output.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/cluster/launch/job_plan.h"
#include "cohort/cluster/launch/line_prefixer.h"

namespace cohort::internal {

// Where the lines of a task go: a descriptor, and whether a terminal shows them in colour.
struct TaskOutput {
  int fd = -1;
  bool colored = false;
};

// Thread safety: none.
class TaskRun {
 public:
  using Clock = std::chrono::steady_clock;

  // `plan` and `task` must outlive it. `number` picks the colour.
  TaskRun(const JobPlan& plan, const PlannedTask& task, int number, TaskOutput out, TaskOutput err);

  const PlannedTask& task() const { return task_; }
  // Errors: as ChildProcess; ResourceExhausted (no pipe).
  void start();
  bool is_running() const { return process_ != nullptr; }
  void send_signal(int signal);
  // Notes the end of the process if it has come, after all of its output; true if it just has.
  bool collect();
  // Passes on what the pipes hold.
  void forward_output();

  // Descriptors that become readable when there is something to do; negative where there is none.
  int pidfd() const { return process_ ? process_->pidfd() : -1; }
  int stdout_fd() const { return stdout_.pipe.get(); }
  int stderr_fd() const { return stderr_.pipe.get(); }

  // Of the last process; nothing before it has ended.
  const std::optional<ExitStatus>& status() const { return status_; }
  int num_starts() const { return num_starts_; }
  // From the first start to the last end, or to now.
  Clock::duration time() const;

 private:
  struct Stream {
    UniqueFd pipe;
    LinePrefixer lines;
    int fd;  // where they go
  };

  static void drain(Stream& stream);
  static void finish(Stream& stream);

  const JobPlan& plan_;
  const PlannedTask& task_;
  Stream stdout_;
  Stream stderr_;
  std::unique_ptr<ChildProcess> process_;
  std::optional<ExitStatus> status_;
  int num_starts_ = 0;
  Clock::time_point first_start_;
  Clock::time_point last_end_;
};

}  // namespace cohort::internal
