// The replicas of one task. Each has a persistent thread, except the first, which runs on the
// thread that calls run().
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/program/process.h"
#include "cohort/distribute/core/run_options.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

class RecordedSteps;
class RunFrame;
class StrategyCore;
class Task;

// The generators of a strategy's replicas, in all tasks. Their seed is drawn once, and once more
// after each random::set_seed.
// Thread safety: any thread.
class StrategyGenerators {
 public:
  // The current task's generator of a stream, with the seed that holds now: the same object at each
  // call, since checkpoints hold on to it.
  random::RandomGenerator of_stream(uint64_t stream);
  // Draws the seed that holds until the next set_seed, and takes that of the first task, where none
  // was drawn. COLLECTIVE over the tasks.
  void agree_on_seed(collective::SyncGroup& group);

 private:
  struct Entry {
    random::RandomGenerator generator;
    uint64_t epoch;  // of its seed
  };
  uint64_t epoch_ = 0;            // how often set_seed had been called; guarded by mutex_
  std::optional<uint64_t> seed_;  // guarded by mutex_
  std::map<std::pair<const Task*, uint64_t>, Entry> entries_;  // guarded by mutex_
  std::mutex mutex_;
};

// Owns the threads. They divide the cores into equal numbers of intra-op threads, and run with the
// caller's thread-local state, except that grad mode is off in a step.
// Thread safety: run() from one thread at a time; a second call is a FailedPreconditionError. So is
// one in a child of fork, where the threads are not.
class LocalReplicas {
 public:
  struct Options {
    std::vector<std::string> devices;  // one a replica
    std::shared_ptr<StrategyGenerators> generators;
    // To the other tasks of the group; null if there are none.
    std::shared_ptr<collective::Communicator> communicator = nullptr;
    // How many cores the replicas divide; 0: all that the process may use.
    int cores = 0;
    // Intra-op threads of each replica; 0: the cores divided by the replicas.
    int threads_per_replica = 0;
    collective::SyncGroup::Order order = collective::SyncGroup::Order::kOfRanks;
  };
  // Errors: ResourceExhausted (no threads; of run(), too, where a replica's has been ended).
  explicit LocalReplicas(Options options);
  // Joins the threads. A thread that is still inside a step on which run() has given up is left to
  // end by itself.
  ~LocalReplicas();
  LocalReplicas(const LocalReplicas&) = delete;
  LocalReplicas& operator=(const LocalReplicas&) = delete;

  int size() const { return static_cast<int>(devices_.size()); }
  const std::vector<std::string>& devices() const { return devices_; }
  const std::vector<c10::Device>& torch_devices() const { return torch_devices_; }
  collective::SyncGroup& group() const { return *group_pointer(); }
  // Keeps what is behind the group alive, too: the replicas' threads end with the last pointer.
  std::shared_ptr<collective::SyncGroup> group_pointer() const;

  // The generators from which the replicas draw; the same ones at each call. The numbers depend on
  // the seed, on a replica's id in the sync group, and on the task where it is in no group with
  // others (task_of_streams). Not while a step runs.
  const std::vector<random::RandomGenerator>& generators();

  // See Strategy::run. `core` is the strategy to which the replicas belong.
  void run(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
           const distribute::RunOptions& options);

 private:
  struct Shared;
  void start_missing_threads();
  void end_threads();
  void run_step(StrategyCore& core, const std::shared_ptr<RunFrame>& frame,
                const distribute::RunOptions& options, std::chrono::nanoseconds timeout);
  bool can_record(const StrategyCore& core, RecordedSteps& steps) const;
  void give_up(const std::exception_ptr& reason);
  void start_workers(StrategyCore& core, const std::shared_ptr<RunFrame>& frame);
  bool wait_for_workers(std::chrono::nanoseconds timeout);
  [[noreturn]] void throw_given_up(std::chrono::nanoseconds timeout) const;
  void check_usable(const StrategyCore& core) const;

  const HomeProcess home_;
  std::vector<std::string> devices_;
  std::vector<c10::Device> torch_devices_;
  int threads_per_replica_;
  // Whether replicas run one after another: there is no core for a second one.
  bool take_turns_ = false;
  std::shared_ptr<Shared> shared_;
};

}  // namespace cohort::internal
