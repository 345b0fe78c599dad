// How a program learns that its machine will be taken away, and how it ends then.
#pragma once

#include <chrono>
#include <functional>

namespace cohort::distribute::experimental {

struct TerminationConfig {
  // Returns whether this machine will be taken away. It is called once a second, on a thread of
  // Cohort's. Null: SIGTERM says it.
  std::function<bool()> termination_watcher_fn = nullptr;
  // Ends the program, on the thread that calls run, in every task. Null: exits with `exit_code`
  // without unwinding: standard output is written out, destructors do not run. If it throws, run
  // does; if it returns, the program goes on, and later signals are ignored.
  std::function<void()> exit_fn = nullptr;
  // 128 + SIGTERM, which Kubernetes and `cohort launch --restarts` take for a reason to try again.
  int exit_code = 143;
  // How long after the signal the machine stays. 0: the program saves and ends at once. Otherwise
  // it saves, goes on, and saves and ends shortly before the time is over. That of the task that
  // got the signal first counts for all, unless that of another task that got it is over before.
  std::chrono::milliseconds grace_period{0};
  // Saves in place of the handler, on the thread that calls run, in every task: to save with
  // options of CheckpointManager::save, say, or more than one checkpoint. For the calls to be
  // counted on after a restart it saves the handler's checkpoint, which holds their number, to the
  // handler's directory. COLLECTIVE as that save, or each task by itself. If it throws in one task,
  // run does in all: in that task what it has thrown, in the others an error of that class which
  // names the task; those that wait in a collective call of the checkpoint's group do not wait on.
  // The next call tries again in all tasks. Null: the handler's own save.
  std::function<void()> save_fn = nullptr;
};

}  // namespace cohort::distribute::experimental
