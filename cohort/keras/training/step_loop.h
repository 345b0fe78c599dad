// What fit, evaluate and predict have in common: a source of batches, and steps over it.
#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/step/scope.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/keras/model/data_source.h"
#include "cohort/keras/training/training.h"

namespace cohort::internal {

struct InputPlan {
  const char* call = "fit";  // for errors
  std::optional<int64_t> batch_size = std::nullopt;
  std::optional<uint64_t> shuffle_seed = std::nullopt;  // of tensors; missing: in order
  int64_t passes = 1;                                   // over tensors, one behind the other
  bool with_index = false;  // elements become (numbers of the rows, x), and are sharded by DATA
};

// How many batches a pass over tensors has. Errors: as make_step_input.
int64_t batches_of(const DataSource::Rows& rows, const InputPlan& plan);

// Errors: InvalidArgument (no examples; a batch_size below 1, or for what is batched already).
std::shared_ptr<StepInput> make_step_input(StepRunner& runner, const DataSource& source,
                                           const InputPlan& plan);

// The model's strategy, current for the lifetime of this, where it is not the default one.
class StrategyScope {
 public:
  explicit StrategyScope(const std::shared_ptr<StrategyCore>& core);

 private:
  std::optional<distribute::Scope> scope_;
};

// Steps of one kind. Thread safety: as StepRunner.
class StepLoop {
 public:
  StepLoop(std::shared_ptr<StrategyCore> core, std::shared_ptr<const StepFunction> step);

  StepRunner& runner() { return *runner_; }
  const std::shared_ptr<StepInput>& input() const { return input_; }
  void set_input(std::shared_ptr<StepInput> input) {
    input_ = std::move(input);
    knows_end_ = input_ == nullptr || input_->knows_end();
  }

  // Whether run() has a step to count. Where only steps find out where the data ends, schedules
  // some, while fewer than `most` are ahead, and waits until `at_once` of those ahead have had
  // data, or all that had any are over.
  // Errors: those of the steps and the data.
  bool has_next(int64_t at_once, int64_t most);
  // Runs so many steps, or fewer where the data ends; some may still be under way. Returns how
  // many. There is a batch for the first of them: the caller has asked has_next(), or knows.
  // Errors: those of the steps and the data.
  int64_t run(int64_t steps);
  // Steps that were scheduled and that no run() has counted. After join() they all had data.
  int64_t ahead() const { return found_ + (knows_end_ ? 0 : std::ssize(under_way_)); }
  // The result of the last step that is over, over all replicas; waits for the first.
  const Structure& result();
  // Keeps the results of all later steps, for take_results().
  void keep_results() { kept_.emplace(); }
  // In the order of the steps. After join().
  std::vector<Structure> take_results() { return *std::exchange(kept_, std::nullopt); }
  // All steps are over. Errors: as StepRunner::join.
  void join();

 private:
  void schedule() { under_way_.push_back(runner_->schedule(step_, input_)); }
  // Returns how many, `most` at most.
  int64_t schedule_several(int64_t most);
  // Takes the results of steps that are over.
  void collect();
  // The same of the next one, which may be under way.
  void wait_for_first();

  std::unique_ptr<StepRunner> runner_;
  std::shared_ptr<const StepFunction> step_;
  std::shared_ptr<StepInput> input_;
  bool knows_end_ = true;  // the input
  std::deque<std::future<Structure>> under_way_;
  int64_t found_ = 0;  // steps that had data, of those that count only then
  bool has_result_ = false;
  Structure result_;
  std::optional<std::vector<Structure>> kept_;
};

// The logs of an epoch so far: metrics over all replicas, and what the last step returned.
class StepLogs final : public keras::Logs::Source {
 public:
  StepLogs(const keras::Model& model, StepLoop& loop) : model_(model), loop_(loop) {}
  void read(std::vector<keras::Logs::Entry>& entries) override;

 private:
  const keras::Model& model_;
  StepLoop& loop_;
};

// The steps that were asked for: missing or -1: as many as there are data.
// Errors: InvalidArgument (0 or another negative number; endless data without steps).
int64_t steps_to_run(const std::optional<int64_t>& steps, const char* option,
                     const StepInput& input);
inline constexpr int64_t kAllSteps = std::numeric_limits<int64_t>::max();
// For progress: steps, or the input's; below 0: unknown.
int64_t expected_steps(int64_t steps_to_run, const StepInput& input);

// 1 or 2 for kVerboseAuto. Errors: InvalidArgument (another number than these and 0).
int resolve_verbose(int verbose, const StrategyCore& core);

// Makes the variables of the model and, if it is compiled, of its losses, metrics and optimizer, as
// its first step would: where other tasks run the steps, all of them need the variables.
// Errors: those of the model on inputs of this form.
void make_variables(const std::shared_ptr<keras::Model>& model, const StepInput& input);

}  // namespace cohort::internal
