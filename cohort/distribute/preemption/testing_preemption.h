// What the tests of PreemptionCheckpointHandler share: they say by a flag that the machine will be
// taken away, and go on after the exit.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "cohort/cluster/resolvers/simple_cluster_resolver.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/preemption/preemption_checkpoint_handler.h"

namespace cohort::distribute {

struct Exited {};  // what exit_fn throws, so that a test goes on

struct Preemption : data::FilesTest {
  experimental::TerminationConfig config() {
    return {.termination_watcher_fn = [this] { return taken_away.load(); },
            .exit_fn = [] { throw Exited(); }};
  }
  // How many checkpoints there are.
  int64_t checkpoints() const {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      count += entry.path().extension() == ".index" ? 1 : 0;
    }
    return count;
  }

  const cluster_resolver::SimpleClusterResolver alone{train::ClusterSpec()};
  std::atomic<bool> taken_away{false};
};

// Runs `step` until the program is told to exit, then returns the number of calls.
inline int64_t run_until_exit(experimental::PreemptionCheckpointHandler& handler,
                              const std::function<void()>& step) {
  try {
    while (true) handler.run(step);
  } catch (const Exited&) {
    return handler.total_run_calls();
  }
}

}  // namespace cohort::distribute
