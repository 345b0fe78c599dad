// The interface between a training loop and any strategy: it runs steps, and says when they are
// done.
//
//   const auto runner = strategy.core()->make_runner();
//   const auto input = runner->make_input(dataset);                    // of global batches
//   const auto step = make_step("train", train_step);                  // returns a loss a replica
//   for (int epoch = 0; epoch < epochs; ++epoch, input->restart()) {
//     while (input->has_next()) losses.push_back(runner->schedule(step, input));
//     runner->join();
//   }
//   losses[0].get().tensor();                                          // summed over the replicas
#pragma once

#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/function_ref.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/distribute/core/input_options.h"
#include "cohort/distribute/core/step_graphs.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::distribute {
class DistributedDataset;
}

namespace cohort::internal {

class StepRunner;

// How the replicas' results of one step are combined, leaf by leaf. Leaves are numbers.
enum class StepReduction {
  kSum,     // as Strategy::reduce: a sum of losses that are scaled by the global batch
  kMean,    // as Strategy::reduce
  kConcat,  // as Strategy::gather along axis 0: predictions, a row for each row of the batch
};

// What every replica runs in a step. Immutable, and shared with every thread that still runs it.
struct StepFunction {
  // Unique among steps, and the same in every task of a job, so that messages between tasks can
  // name the step.
  std::string name;
  StructureFunction<distribute::ReplicaContext> call;
  // One reduction for all leaves of the result, or one per leaf in flatten()'s order.
  std::vector<StepReduction> reductions;
  // Graphs into which strategies record it; missing: they do not.
  std::optional<distribute::StepGraphs> graphs = std::nullopt;
};

// `fn` as Strategy::run takes it: it may ask for a ReplicaContext& first, then takes the batch as a
// Structure or its members one by one. What it returns becomes a structure (core/to_structure.h).
template <class Fn>
std::shared_ptr<const StepFunction> make_step(
    std::string name, Fn&& fn, std::vector<StepReduction> reductions = {StepReduction::kSum},
    std::optional<distribute::StepGraphs> graphs = {}) {
  return std::make_shared<const StepFunction>(StepFunction{
      .name = std::move(name),
      .call = structure_function<distribute::ReplicaContext>(std::forward<Fn>(fn), kStepSite),
      .reductions = std::move(reductions),
      .graphs = std::move(graphs)});
}

// The runner of strategies that run a step on all replicas of this process at once: it runs each
// where it is scheduled, on the calling thread.
std::unique_ptr<StepRunner> make_local_runner(std::shared_ptr<StrategyCore> core);

// Runs `call`, which every task of a job makes alike. If it throws, tells a runner
// (StepRunner::fail) that exists from the beginning of the call.
// Errors: those of `call`.
void in_every_task(const std::shared_ptr<StrategyCore>& core, FunctionRef<void()> call);

// Runs the step once on all replicas of the calling task, and reduces their results.
// Errors: those of Strategy::run; InvalidArgument (see StepRunner::schedule).
Structure run_step(StrategyCore& core, const std::shared_ptr<const StepFunction>& step,
                   const distribute::PerReplica<Structure>& batch);

// The source from which each step draws its batch. Made by a runner, for its strategy. A checkpoint
// holds its position and the number of its pass: after a restore, steps draw the batches that they
// would have drawn, in this pass and in later ones.
// Thread safety: none; for the thread that uses the runner.
class StepInput : public train::Trackable {
 public:
  // Whether there is a batch for one more step. May have to read ahead, so it can take as long as
  // reading a batch. An error in reading counts as a batch: the next step ends with it. If workers
  // draw from their own pipelines, true until a worker has reported the end.
  virtual bool has_next() = 0;
  // Begins another pass over the data; a new input is at the beginning of its first pass. If
  // workers draw from their own pipelines, each creates a new iterator before its next step.
  virtual void restart() = 0;
  // The number of steps of one pass, the same in all tasks, data::kInfiniteCardinality or
  // data::kUnknownCardinality.
  virtual int64_t cardinality() const = 0;
  // Whether there is a batch for each step of which has_next() says so. If not, the end is known
  // only when a worker has met it: steps that were scheduled by then end with OutOfRange.
  virtual bool knows_end() const { return true; }
  // What a replica gets in a step.
  virtual StructureSpec element_spec() const = 0;
  // The first thing that a replica would get, for what element_spec does not know. From an iterator
  // of its own, so that steps get it too; a generator begins a pass for it. COLLECTIVE over tasks
  // that read their own input for the same steps.
  // Errors: OutOfRange (the data has no batches); those of the data.
  virtual Structure example() const = 0;
};

// Made by StrategyCore::make_runner(); keeps the strategy alive. If the runner is destroyed while a
// step is running, the strategy waits for the step or gives up on it, as for any of its steps.
// Thread safety: none; one thread at a time, outside of steps.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Makes a step known, in every task of a job, before the first is scheduled.
  virtual void declare(const std::shared_ptr<const StepFunction>&) {}

  // Runs `loop`, which schedules steps. If workers run steps by themselves, only the task that
  // hands the steps out runs it; the others serve until it has ended. So every task of a job makes
  // the same calls, each with the same steps and inputs, declared and made before. Returns in every
  // task what the loop has returned; a task that was started again passes by the loops that have
  // ended. Within another loop of this strategy: runs `loop`, and no other task learns of it.
  // Errors: in every task, those of the loop. In tasks that serve, too: Unavailable (the task that
  // runs the loop is lost); FailedPrecondition (it runs another loop here: the programs differ).
  virtual Structure run_loop(FunctionRef<Structure()> loop) { return loop(); }

  // Says that what every task of a job does alike, around this runner, has failed in this one: a
  // fit, of whose callbacks one throws, or whose options are wrong. Once run_loop has ended all
  // tasks know of its error. Before, the task that hands the steps out tells the others; those meet
  // it first, if they have not yet, so that it comes to its own error rather than to their absence,
  // and wait for it some seconds. Under synchronous strategies others learn of it if the program
  // ends its strategy while they go on.
  virtual void fail(const std::exception_ptr&) noexcept {}

  // Makes every replica run the step once on the next batch of `input`. The future holds the
  // reduced result, or the error with which the step ended: the function's; the input's (OutOfRange
  // at its end); or InvalidArgument (results of different forms or shapes, or that cannot be
  // reduced in this way; the number of reductions differs from that of the leaves). Synchronous
  // strategies return when the step is over, and the future is ready. If workers run steps by
  // themselves, the call only queues the step, and some worker draws the batch from its own input;
  // it waits while as many steps are under way as keep all workers busy.
  // Errors: that of an earlier step, as join() throws it, before this step begins, so that a loop
  // that ignores its futures ends soon after a failure; InvalidArgument (another strategy's input).
  virtual std::future<Structure> schedule(const std::shared_ptr<const StepFunction>& step,
                                          const std::shared_ptr<StepInput>& input) = 0;

  // Schedules steps for the next batches of the input, `most` at most and at least one. Steps that
  // are recorded as graphs run as one where there are several, so that all are one launch.
  // Returns a future for each step that was scheduled, or for the one that has failed.
  // Errors: those of schedule.
  virtual std::vector<std::future<Structure>> schedule_several(
      const std::shared_ptr<const StepFunction>& step, const std::shared_ptr<StepInput>& input,
      int64_t most);

  // Returns when all scheduled steps are over: the only call that waits for them. Synchronous
  // strategies have nothing to wait for. If workers run steps by themselves, it waits for all of
  // them, and the first error cancels those that have not begun.
  // Errors: the first error of a step since join() or schedule() last threw one, whether or not its
  // future was read. The runner can be used again afterwards.
  virtual void join() = 0;

  // Draws batches from a dataset of global batches, or from a function that makes a dataset of
  // per-replica batches for each input worker: as Strategy::experimental_distribute_dataset and
  // distribute_datasets_from_function, with their errors. Synchronous strategies make the pipelines
  // in this call. If workers run steps by themselves, each worker makes its own, from the same
  // declaration in its own program.
  virtual std::shared_ptr<StepInput> make_input(const data::Dataset& dataset) = 0;
  virtual std::shared_ptr<StepInput> make_input(const distribute::DatasetFunction& fn,
                                                const distribute::InputOptions& options) = 0;
  std::shared_ptr<StepInput> make_input(const distribute::DatasetFunction& fn) {
    return make_input(fn, distribute::InputOptions());
  }
  // Draws from what was distributed before.
  // Errors: InvalidArgument (by another strategy).
  virtual std::shared_ptr<StepInput> make_input(const distribute::DistributedDataset& dataset) = 0;
};

}  // namespace cohort::internal
