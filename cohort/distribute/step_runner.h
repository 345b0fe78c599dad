// What a training loop needs of a strategy, whatever the strategy: to have steps run, and to know
// when they are done.
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

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/structure_call.h"
#include "cohort/distribute/strategy.h"

namespace cohort::internal {

// How the replicas' results of one step become one, leaf by leaf. Leaves are numbers.
enum class StepReduction {
  kSum,     // as Strategy::reduce: a sum of losses that are scaled by the global batch
  kMean,    // as Strategy::reduce
  kConcat,  // as Strategy::gather along axis 0: predictions, a row for each row of the batch
};

// What every replica runs in a step. Immutable, and shared with whoever still runs it.
struct StepFunction {
  // The same in every task of a job, and no other step's: what a message to another task says.
  std::string name;
  StructureFunction<distribute::ReplicaContext> call;
  // One for all leaves of the result, or one for each in flatten()'s order.
  std::vector<StepReduction> reductions;
};

// `fn` as Strategy::run takes it: it may ask for a ReplicaContext& first, then takes the batch as a
// Structure or its members one by one. What it returns becomes a structure (core/to_structure.h).
template <class Fn>
std::shared_ptr<const StepFunction> make_step(std::string name, Fn&& fn,
                                              std::vector<StepReduction> reductions = {
                                                  StepReduction::kSum}) {
  return std::make_shared<const StepFunction>(StepFunction{
      .name = std::move(name),
      .call = structure_function<distribute::ReplicaContext>(std::forward<Fn>(fn), kStepSite),
      .reductions = std::move(reductions)});
}

// Batches for steps, from where each step draws its own. Made by a runner, for its strategy's.
// Thread safety: none; for the thread that uses the runner.
class StepInput {
 public:
  virtual ~StepInput() = default;

  // Whether there is a batch for one more step. Reads ahead where it must, so it takes as long as
  // reading a batch. An error of reading counts as a batch: the next step ends with it.
  // Where workers draw from pipelines of their own it is true until one has told of its end.
  virtual bool has_next() = 0;
  // Begins another pass over the data; a new input stands at the beginning of its first.
  // Where workers draw from pipelines of their own each makes a new iterator before its next step.
  virtual void restart() = 0;
};

// Made by StrategyCore::make_runner(); keeps the strategy alive. A step that is still running when
// the runner goes away is waited for or given up, as the strategy does with its steps.
// Thread safety: none; one thread at a time, outside of steps.
class StepRunner {
 public:
  virtual ~StepRunner() = default;

  // Has every replica run the step once on the next batch of `input`. The future holds its reduced
  // result, or the error that it ended with: the function's, the input's (OutOfRange at its end),
  // or InvalidArgument (replicas' results of different forms or shapes, or that cannot be reduced
  // so; another number of reductions than leaves). Synchronous strategies return when the step is
  // over, and the future is ready; where workers run steps by themselves the call only queues it,
  // and some worker draws the batch from its own input. Errors: that of an earlier step, as join()
  // throws it, before anything of this step happens, so that a loop that takes no results ends soon
  // after a failure; InvalidArgument (another strategy's input).
  virtual std::future<Structure> schedule(const std::shared_ptr<const StepFunction>& step,
                                          const std::shared_ptr<StepInput>& input) = 0;

  // Returns when all scheduled steps are over: the only call that waits for them.
  // Synchronous strategies have nothing left to wait for; where workers run steps by themselves it
  // waits for all of them, and the first error cancels those that have not begun.
  // Errors: the first that a step ended with since the last call of join() or schedule() threw one,
  // and whether or not its future was read. The runner can be used again after it.
  virtual void join() = 0;

  // Batches from a dataset of global batches, or from a function that makes one of per-replica
  // batches for each input worker: as Strategy::experimental_distribute_dataset and
  // distribute_datasets_from_function, whose errors these are.
  // Synchronous strategies make the pipelines here; where workers run steps by themselves each
  // worker makes its own, of the same declaration in its own program.
  virtual std::shared_ptr<StepInput> make_input(const data::Dataset& dataset) = 0;
  virtual std::shared_ptr<StepInput> make_input(const distribute::DatasetFunction& fn) = 0;
};

}  // namespace cohort::internal
