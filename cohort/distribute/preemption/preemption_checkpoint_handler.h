// Saves a program's progress when its machine is about to be taken away, in all tasks at the same
// call of the training function, and ends the program so that its launcher starts it again.
//
//   tf::distribute::experimental::PreemptionCheckpointHandler handler(
//       resolver, checkpoint, {.checkpoint_dir = directory});
//   for (int64_t epoch = handler.total_run_calls() / num_steps; epoch < epochs; ++epoch) {
//     for (int64_t step = handler.total_run_calls() % num_steps; step < num_steps; ++step) {
//       handler.run(train_step, iterator);
//     }
//   }
//
// docs/preemption.md says what happens when, and what can go wrong.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/distribute/preemption/termination_config.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/checkpoint_manager.h"

namespace cohort::distribute {
class Server;
}

namespace cohort::internal {
class PreemptionHandlerImpl;
}

namespace cohort::distribute::experimental {

struct PreemptionCheckpointOptions {
  // The directory in which the checkpoint is saved, as ckpt-N of which one is kept. Needed with a
  // Checkpoint; a CheckpointManager has its own.
  std::string checkpoint_dir = "";
  TerminationConfig termination_config = {};
  // This task's server, in a cluster of several workers; it outlives the handler. nullptr: the one
  // that MultiWorkerMirroredStrategy has started, or a new one.
  Server* server = nullptr;
};

// Saves when the task is about to be taken away. Once it is made, SIGTERM ends neither the process
// (unless termination_watcher_fn is given) nor a Server's join(). There may be several handlers in
// a process, for its tasks.
// Thread safety: one thread, as the checkpoint's.
class COHORT_API PreemptionCheckpointHandler {
 public:
  // Restores the latest checkpoint of the directory, if there is one; the number of calls is part
  // of it, under the name "preemption_checkpoint_handler". A Checkpoint serves one handler.
  // COLLECTIVE over the workers, which make their handlers in the same order.
  // Errors: InvalidArgument (a Checkpoint without checkpoint_dir, a CheckpointManager with another
  // one; a negative grace period; a cluster that cannot run), those of
  // CheckpointManager::restore_or_initialize and of Coordination.
  PreemptionCheckpointHandler(const cluster_resolver::ClusterResolver& resolver,
                              const train::Checkpoint& checkpoint,
                              PreemptionCheckpointOptions options);
  PreemptionCheckpointHandler(const cluster_resolver::ClusterResolver& resolver,
                              const train::CheckpointManager& manager,
                              PreemptionCheckpointOptions options = {});
  ~PreemptionCheckpointHandler();
  PreemptionCheckpointHandler(const PreemptionCheckpointHandler&) = delete;
  PreemptionCheckpointHandler& operator=(const PreemptionCheckpointHandler&) = delete;

  // Calls fn(args...) and returns what it returns. If this was the call after which all tasks stop,
  // saves (COLLECTIVE) and ends the program, or goes on for the grace period.
  // Errors: what fn throws, after a report to the other tasks; those of saving, of one task in all
  // (TerminationConfig::save_fn), which the next call tries again; DeadlineExceeded and Unavailable
  // (tasks that could not agree, or that did not end their save or were lost in it: names whom);
  // what termination_watcher_fn and exit_fn throw.
  template <class Fn, class... Args>
  std::invoke_result_t<Fn&, Args...> run(Fn&& fn, Args&&... args) {
    using Result = std::invoke_result_t<Fn&, Args...>;
    if constexpr (std::is_void_v<Result>) {
      run_call([&] { fn(std::forward<Args>(args)...); });
    } else {
      std::optional<Result> result;
      run_call([&] { result.emplace(fn(std::forward<Args>(args)...)); });
      return std::move(*result);
    }
  }

  // Does what run does after a call, for loops that do not give it their step: to be called after
  // each step, in every task alike. Counts as one of run's calls, whose time is that since the last
  // one.
  //
  //   while (trained_steps.value().item<int64_t>() < steps) {
  //     train_step();
  //     handler.save_checkpoint_if_preempted();
  //   }
  //
  // Errors: those of run, without fn's.
  void save_checkpoint_if_preempted();

  // How often run has called its function to the end, in this process and in those before it whose
  // checkpoint was restored.
  int64_t total_run_calls() const;

 private:
  void run_call(FunctionRef<void()> call);

  std::shared_ptr<internal::PreemptionHandlerImpl> impl_;  // not destroyed in a child of fork
};

}  // namespace cohort::distribute::experimental
