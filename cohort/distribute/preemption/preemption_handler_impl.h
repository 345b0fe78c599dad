// The implementation of PreemptionCheckpointHandler.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "cohort/cluster/signal_watch.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/synchronized.h"
#include "cohort/distribute/preemption/stop_agreement.h"
#include "cohort/distribute/preemption/termination_config.h"
#include "cohort/train/checkpoint_manager.h"

namespace cohort::internal {

class RunCalls;

// Two agreements at most follow each other: on the call after which all save, and if there is a
// grace period, on the call after which all save again and end. The second begins before the save
// of the first, so that a task whose save fails takes part in it while it tries again. One thread
// waits for the signal and asks, again and again where an agreement fails, another one answers what
// other tasks ask.
// Thread safety: run from one thread at a time. Not destroyed in a child of fork (HomePtr): its end
// would be that of its parent's handler.
class PreemptionHandlerImpl {
 public:
  using Config = distribute::experimental::TerminationConfig;

  // COLLECTIVE over the group: restores. Errors: those of CheckpointManager::restore_or_initialize.
  PreemptionHandlerImpl(StopGroup group, const train::CheckpointManager& manager, Config config);
  ~PreemptionHandlerImpl();

  void run(FunctionRef<void()> call);
  // A call of run that does nothing, at the end of a step that began when the last one had ended.
  void end_step();
  int64_t total_run_calls() const;

 private:
  using Clock = std::chrono::steady_clock;

  void end_threads();
  void wait_and_ask();
  void answer_others();
  // Returns whether there is a decision; else the handler ends.
  bool ask_until_decided(size_t round, const std::string& note);
  bool wait_for_termination();
  bool wait_for_signal();
  bool poll_watcher();
  // The one for the next call.
  StopAgreement& own_round() const { return *state_.lock()->rounds[round_]; }
  // Returns nullptr at the end of the handler.
  StopAgreement* wait_for_round(size_t round);
  bool wait_until(Clock::time_point time);
  std::chrono::milliseconds average_call() const;
  void note_failure();
  void throw_failure();

  void run_since(Clock::time_point begin, FunctionRef<void()> call);
  void report(const std::exception_ptr& error) const;
  void tell_the_end() const;
  void stop_here();
  void begin_second_round();
  void save_for(StopAgreement& round);
  void save();
  void leave();

  const HomeProcess home_;
  const StopGroup group_;
  const train::CheckpointManager manager_;
  const Config config_;
  const std::unique_ptr<TerminationWatch> watch_;  // nullptr: termination_watcher_fn is asked
  const UniqueFd ended_event_;
  const std::shared_ptr<RunCalls> calls_;

  struct State {
    bool ended = false;
    std::exception_ptr failure;
    std::unique_ptr<StopAgreement> rounds[2];
    Clock::duration time_in_calls{0};
    int64_t timed_calls = 0;
  };
  Synchronized<State> state_;

  size_t round_ = 0;                           // of the thread that calls run
  bool is_over_ = false;                       // of the thread that calls run
  Clock::time_point last_end_ = Clock::now();  // of a call; of the thread that calls run
  std::thread asker_;
  std::thread answerer_;  // in a cluster
};

}  // namespace cohort::internal
