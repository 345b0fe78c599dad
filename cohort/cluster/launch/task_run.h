// One task of a launched job: its process, from start to restart, and its output.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "cohort/cluster/launch/child_process.h"
#include "cohort/cluster/launch/job_plan.h"
#include "cohort/cluster/launch/line_prefixer.h"
#include "cohort/cluster/launch/output_sink.h"

namespace cohort::internal {

// Where the lines of a task go, and whether a terminal shows them in colour.
struct TaskLines {
  OutputSink& sink;
  bool colored = false;
};

// Thread safety: none.
class TaskRun {
 public:
  using Clock = std::chrono::steady_clock;

  // `plan`, `task` and the sinks must outlive it. `number` picks the colour.
  TaskRun(const JobPlan& plan, const PlannedTask& task, int number, TaskLines out, TaskLines err);

  const PlannedTask& task() const { return task_; }
  // Errors: as ChildProcess; ResourceExhausted (no pipe).
  void start();
  // Also while processes live on that its own has started.
  bool is_running() const { return process_ != nullptr; }
  void send_signal(int signal);
  // Notes the end of the process if it has come, after all of its output; true if it just has. What
  // the process left running gets SIGTERM, if no signal has gone to it before, and is killed after a
  // moment; the task has ended when it is gone.
  bool collect();
  // Passes on what the pipes hold, as far as the sinks have room, and a bounded part of it a call.
  void forward_output();

  // Descriptors that become readable when there is something to do; negative where there is none.
  int pidfd() const { return process_ && !look_at_ ? process_->pidfd() : -1; }
  int stdout_fd() const { return stdout_.readable_fd(); }
  int stderr_fd() const { return stderr_.readable_fd(); }
  // When to collect in any case.
  const std::optional<Clock::time_point>& look_at() const { return look_at_; }

  // Of the last process; nothing before it has ended.
  const std::optional<ExitStatus>& status() const { return status_; }
  int num_starts() const { return num_starts_; }
  Clock::time_point last_start() const { return last_start_; }
  // From the first start to the last end, or to now.
  Clock::duration time() const;
  // Of the last process that has ended.
  Clock::duration last_run_time() const { return last_end_ - last_start_; }

 private:
  struct Stream {
    UniqueFd pipe;
    LinePrefixer lines;
    OutputSink& sink;

    int readable_fd() const { return sink.has_room() ? pipe.get() : -1; }
  };

  // True where the pipe may hold more.
  static bool read_block(Stream& stream, size_t most);
  static void drain(Stream& stream);
  static void finish(Stream& stream);
  bool is_group_over();

  const JobPlan& plan_;
  const PlannedTask& task_;
  Stream stdout_;
  Stream stderr_;
  std::unique_ptr<ChildProcess> process_;
  bool was_signalled_ = false;
  std::optional<Clock::time_point> look_at_;  // at what the process left running
  std::optional<Clock::time_point> kill_at_;
  std::optional<ExitStatus> status_;
  int num_starts_ = 0;
  Clock::time_point first_start_;
  Clock::time_point last_start_;
  Clock::time_point last_end_;
};

}  // namespace cohort::internal
