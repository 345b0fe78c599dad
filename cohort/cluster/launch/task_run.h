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

// The destination of a task's lines, and whether a terminal shows them in colour.
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
  // Whether the task runs; also while processes live on that its own process has started.
  bool is_running() const { return process_ != nullptr; }
  void send_signal(int signal);
  // Notes the end of the process if it has come, after all of its output. Returns true if it just
  // has. Processes that it left running get SIGTERM, if no signal has gone to them before, and are
  // killed after a moment; the task has ended when they are gone.
  bool collect();
  // Passes on the output in the pipes, as far as the sinks have room, and only a bounded part of it
  // in a call.
  void forward_output();

  // Descriptors that become readable when there is something to do; negative where there is none.
  int pidfd() const { return process_ && !look_at_ ? process_->pidfd() : -1; }
  int stdout_fd() const { return stdout_.readable_fd(); }
  int stderr_fd() const { return stderr_.readable_fd(); }
  // The time at which collect() is to be called in any case.
  const std::optional<Clock::time_point>& look_at() const { return look_at_; }

  // The exit status of the last process; nullopt until it has ended.
  const std::optional<ExitStatus>& status() const { return status_; }
  int num_starts() const { return num_starts_; }
  Clock::time_point last_start() const { return last_start_; }
  Clock::time_point last_end() const { return last_end_; }
  // The time from the first start to the last end, or to now while the task runs.
  Clock::duration time() const;
  // The run time of the last process that has ended.
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
