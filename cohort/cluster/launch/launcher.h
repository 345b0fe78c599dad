// Runs the tasks of a job until they have ended: passes on their output and this process's signals,
// restarts those that may be, and ends the others when one fails for good.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <vector>

#include "cohort/cluster/launch/job_plan.h"
#include "cohort/cluster/launch/task_run.h"

namespace cohort::internal {

// A descriptor, and whether a terminal shows its lines in colour.
struct TaskOutput {
  int fd = -1;
  bool colored = false;
};

// The processes that the system ends for want of memory where the tasks run; by default nothing is
// known.
struct MemoryKills {
  std::function<std::optional<int64_t>()> count = {};  // of processes it has ended, ever
  std::optional<int64_t> limit_bytes = std::nullopt;
};

struct LaunchOptions {
  // How often each task is started again after it was killed by a signal or exited with 128 or more
  // (it lost a peer, it was pre-empted). Lower codes say that another try would end the same way. A
  // worker of an elastic job starts again after every code but 0 and 64.
  int restarts = 0;
  // False: in a job without ps, chief and workers train in step, and none can go on without the
  // others. They start again together, also those that had ended with 0: all go on from the last
  // checkpoint. True: each task starts again by itself.
  bool restart_each = false;
  // The pause before the first restart of a task. It doubles from restart to restart, up to a
  // minute; up to half a minute in an elastic job.
  std::chrono::milliseconds restart_delay = std::chrono::seconds(1);
  // If a task has run for this long before it failed, the pause before its restart is restart_delay
  // again.
  std::chrono::milliseconds steady_after = std::chrono::minutes(1);
  // The time that the other tasks have to end by themselves after one has failed for good, or
  // before they start again together. They notice the failure, say which task it was, and may save.
  std::chrono::milliseconds failure_grace = std::chrono::seconds(3);
  // The time that the remaining tasks have to end by themselves once the job is over; then again
  // after SIGTERM, before SIGKILL. If the chief of a job with ps has ended well, workers and ps
  // tasks that were started again, and may look for it, have failure_grace.
  std::chrono::milliseconds grace = std::chrono::seconds(30);
  MemoryKills memory_kills = {};  // so that a task which is killed for want of memory is said to be
  TaskOutput out = {};            // where the tasks' lines go
  TaskOutput err = {};            // and what the launcher itself says
  bool summary = false;           // says at the end what print_summary does
};

struct TaskSummary {
  TaskId id;
  std::optional<ExitStatus> status;  // nothing: it was never started
  std::chrono::milliseconds time;
  int restarts = 0;
  bool stopped = false;  // by the launcher, after the job was over
};

struct LaunchResult {
  // 0: the job is done. Else that of the task whose failure ended it, as a shell says it, or 128 +
  // n after signal n.
  int exit_code = 0;
  std::vector<TaskSummary> tasks;
};

// The job is done when its chief (in a job with ps), or its chief and all workers, have exited with
// 0; whatever became of the others, the chief's success is that of a job with ps. Such a job goes
// on without a worker or evaluator that has failed for good, as long as it has a worker.
//
// In an elastic job (JobPlan::min_workers) the others go on when a worker fails, and it alone
// starts again. The job is done when all workers that are left have exited with 0; it fails when
// fewer than min_workers are left, or when none runs and none has exited with 0. The exit code is
// then that of the first one that is lost.
//
// SIGINT,
// SIGTERM, SIGHUP and SIGQUIT go to the tasks and to what they have started; a second signal ends
// them with SIGTERM, a third with SIGKILL, and so does the grace. While nobody reads the output,
// tasks that write wait; signals work all the same. What is still to be written at the end waits
// for its reader until a signal comes. Where the reader is gone, the tasks go on.
// Thread safety: the process's signals are blocked meanwhile, SIGPIPE is ignored; one call at a
// time.
// Errors: those of ChildProcess, after all tasks that had been started were killed.
LaunchResult launch(const JobPlan& plan, const LaunchOptions& options);

// A line a task: how it ended, how long it took, how often it was restarted.
void print_summary(const LaunchResult& result, std::ostream& out);

}  // namespace cohort::internal
