// The calls of a program that run steps (a fit, an evaluate) and what each has declared, in every
// task of a parameter server cluster. Calls are numbered in the order in which the program makes
// them, which is the same in every task: that is how tasks name them to each other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "cohort/core/program/per_task.h"
#include "cohort/core/threads/synchronized.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/parameter_server/runner/worker_input.h"

namespace cohort::internal {

class CoordinatorCore;
class LoopTable;

// One input of a call, for all workers of this process.
struct ServedInput {
  ServedInput(const WorkerInput::MakeDataset& make, const distribute::InputContext& of_any);

  PerTask<WorkerInput> of_task;
};

// A call, from the making of its first runner to the end of the last one.
struct LoopCall {
  explicit LoopCall(LoopTable& owner, int64_t own_number) : table(owner), number(own_number) {}
  ~LoopCall();
  LoopCall(const LoopCall&) = delete;
  LoopCall& operator=(const LoopCall&) = delete;

  LoopTable& table;
  const int64_t number;
  int64_t runners = 0;    // made so far
  std::string name = "";  // of its first step: for errors
  // The coordinator, in the task that hands the steps out: the program's own ClusterCoordinator, if
  // it has one.
  std::shared_ptr<CoordinatorCore> coordinator;
  bool owns_coordinator = false;
  bool is_led = false;   // a loop of it is running in this task, the coordinator
  bool has_run = false;  // a loop of it has begun in this task
};

// Thread safety: any thread.
class LoopTable {
 public:
  using Clock = std::chrono::steady_clock;
  struct InputKey {
    int64_t runner = 0;
    int64_t slot = 0;  // of the runner
    auto operator<=>(const InputKey&) const = default;
  };

  // The call that is under way, or the next one.
  std::shared_ptr<LoopCall> open();
  // To how many the program has come. Takes no lock.
  int64_t num_calls() const { return opened_; }
  bool has_calls() const { return num_calls() > 0; }
  void declare(LoopCall& call, const std::shared_ptr<const StepFunction>& step);
  void set_input(const LoopCall& call, const InputKey& key, std::shared_ptr<ServedInput> input);
  void remove_input(const LoopCall& call, const InputKey& key);
  // All of it is declared: steps may come.
  void serve(const LoopCall& call);
  // The program has failed before it came to the call, or leaves it before its end: other tasks
  // take its steps.
  void give_up(const LoopCall& call);

  struct Found {
    std::shared_ptr<const StepFunction> step;
    std::shared_ptr<ServedInput> input;
  };
  // For a step that has come. Waits until the program has come to the call, until `deadline`.
  // `generation`: of the coordinator that sent the step.
  // Errors: Unavailable with Cause::kInputLost (it has not come or has given up, or the coordinator
  // was started again and runs a call that is over here); FailedPrecondition (the call is over
  // here, or has another step or no such input: the programs differ).
  Found find(int64_t call, const std::string& step, const InputKey& input, int64_t generation,
             Clock::time_point deadline);
  // This program has learnt from the coordinator of `generation` that a call is over.
  void learn_generation(int64_t generation);
  // For the program, while it serves. Errors: Unavailable (a coordinator that was started again has
  // come with a step of an earlier call, for which this program must be started again).
  void check_coordinator();
  // Waits until the program has come to the call for which find() has waited in vain.
  // Errors: Unavailable (it has not).
  void wait_for_program(Clock::time_point deadline);

 private:
  friend struct LoopCall;
  void close(const LoopCall& call);

  struct Calls {
    bool has_come_to(int64_t call) const { return served >= call; }

    std::weak_ptr<LoopCall> open;
    int64_t served = 0;      // the last call that was declared whole
    int64_t given_up = 0;    // the last call that the program has given up
    int64_t awaited = 0;     // by steps that have come too early
    int64_t generation = 0;  // of the latest coordinator that steps or results have come from
    bool coordinator_went_back = false;  // to a call that is over here
    std::string name;                    // of the call that is under way
    std::map<std::string, std::shared_ptr<const StepFunction>> steps;  // of that call
    std::map<InputKey, std::shared_ptr<ServedInput>> inputs;
  };

  std::atomic<int64_t> opened_{0};  // calls so far, so that the first has number 1
  Synchronized<Calls> calls_;       // with which opened_ changes
};

}  // namespace cohort::internal
