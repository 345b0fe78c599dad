#include "cohort/parameter_server/runner/server_runner.h"

#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include <chrono>
#include <utility>

#include "cohort/cluster/server_core.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/interrupt.h"
#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/data/graph/cardinality.h"
#include "cohort/distribute/input/distribute_dataset.h"
#include "cohort/parameter_server/closures/served_task.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/runner/early_failure.h"
#include "cohort/parameter_server/runner/loop_result.h"
#include "cohort/parameter_server/variables/read_cache.h"

namespace cohort::internal {

using distribute::DatasetFunction;
using distribute::DistributedDataset;
using distribute::InputContext;
using std::chrono::steady_clock;

namespace {

// Closures on a worker at a time. It runs them in the order of the data, so that a worker that is
// alone can repeat a run to the bit.
constexpr int kWindow = 2;
// Closures that wait for each worker, so that it is never idle.
constexpr int64_t kWaitingPerWorker = 2;
// A program that is a little behind comes within it; of a worker that was started again others take
// the steps meanwhile.
constexpr std::chrono::seconds kPatience{10};
constexpr std::chrono::hours kMostPerStep{1};
constexpr std::chrono::hours kMostPerJoin{24 * 365};
constexpr std::chrono::seconds kGiveUp{5};
// The longest wait of a task that leaves a call by itself, for the step that it runs.
constexpr std::chrono::seconds kMostToLeave{20};
// The longest wait of a task that fails before its first step, for the coordinator to come to the
// same place or to learn of it; more than early_failure.h takes to wait for other tasks.
constexpr std::chrono::seconds kMostToMeet{8};

Structure arguments_of(const LoopCall& call, const std::string& step,
                       const LoopTable::InputKey& input, const BatchPlace& place) {
  const std::vector<int64_t> numbers = {call.number, input.runner, input.slot, place.pass,
                                        place.number};
  return tuple(at::tensor(numbers, at::dtype(at::kLong)),
               StringTensor(std::vector<std::string>{step, place.start}));
}

// They have come from another task.
void check_arguments(const Structure& arguments) {
  const bool are_two = arguments.is_tuple() && arguments.size() == 2 && arguments[0].is_leaf() &&
                       arguments[1].is_leaf();
  if (are_two && arguments[0].leaf().is_tensor() && arguments[1].leaf().is_strings()) {
    const Tensor& numbers = arguments[0].tensor();
    const bool are_numbers =
        numbers.scalar_type() == int64 && numbers.numel() == 5 && numbers.is_contiguous();
    if (are_numbers && arguments[1].strings().numel() == 2) return;
  }
  throw InvalidArgumentError(
      "a step of fit, evaluate or predict takes five numbers of int64 and "
      "two texts; what came is something else");
}

}  // namespace

Structure run_named_step(const std::shared_ptr<StrategyCore>& strategy, ProgramLoops& loops,
                         const Structure& arguments) {
  check_arguments(arguments);
  const auto* numbers = arguments[0].tensor().data_ptr<int64_t>();
  const StringTensor& texts = arguments[1].strings();
  if (!loops.cluster.is_coordinator() && !loops.cluster.has_own_server()) {
    throw FailedPreconditionError(
        "the coordinator runs fit, evaluate or predict, but the program of this task calls "
        "Server::join(): let every task make the same calls, which serve by themselves");
  }
  const LoopTable::Found found =
      loops.table.find(numbers[0], std::string(texts[0]), {numbers[1], numbers[2]},
                       generation_of(loops.cluster.session()), steady_clock::now() + kPatience);
  const auto batch = found.input->of_task.get().take(
      {.pass = numbers[3], .number = numbers[4], .start = std::string(texts[1])});
  const auto has_batch = [](bool value) { return at::scalar_tensor(value, at::kBool); };
  if (!batch) return tuple(has_batch(false));
  return tuple(has_batch(true), run_step(*strategy, found.step, *batch));
}

ServerRunner::ServerRunner(std::shared_ptr<StrategyCore> strategy, ProgramLoops& loops)
    : strategy_(std::move(strategy)),
      loops_(loops),
      call_(loops_.table.open()),
      number_(call_->runners++) {}

ServerRunner::~ServerRunner() {
  if (call_->coordinator == nullptr) return;
  if (under_way_->lock()->steps == 0) return;
  try {
    call_->coordinator->queue().join(steady_clock::now() + kGiveUp);
  } catch (const Error&) {  // of steps for which nobody waits any more
  }
}

void ServerRunner::declare(const std::shared_ptr<const StepFunction>& step) {
  loops_.table.declare(*call_, step);
}

Structure ServerRunner::run_loop(FunctionRef<Structure()> loop) {
  call_->has_run = true;
  loops_.is_left_alone = false;
  switch (loops_.cluster.role()) {
    case ClusterRole::kCoordinator:
      return lead(loop);
    case ClusterRole::kWorker:
    case ClusterRole::kPs:
      return follow();
    case ClusterRole::kEvaluator:
      break;
  }
  throw FailedPreconditionError(
      "an evaluator takes no part in the training: let its program read the checkpoints "
      "(train::checkpoints_iterator) before it comes to fit, evaluate or predict");
}

Structure ServerRunner::lead(FunctionRef<Structure()> loop) {
  // What the loop reads are results of its steps, whatever scope of cached reads it runs in.
  const ScopedCachedReads current(nullptr);
  // Within another loop, as a callback's: the other tasks, which have no callbacks, wait for that
  // one.
  if (call_->is_led) return loop();
  distribute::Coordination* others = loops_.cluster.coordination();
  LoopResult result{.name = call_->name};
  call_->is_led = true;
  try {
    result.value = loop();
  } catch (...) {
    result.error = caught_error();
  }
  call_->is_led = false;
  if (others != nullptr) {
    result.generation = loops_.cluster.generation();
    try {
      loops_.published.add(*others, call_->number, result);
    } catch (const Error&) {
      if (result.error == nullptr) throw;
    }
  }
  if (result.error != nullptr) std::rethrow_exception(result.error);
  return result.value;
}

Structure ServerRunner::follow() {
  const InterruptScope interrupts;  // the coordinator ends the loop; saves need this task
  loops_.table.serve(*call_);
  loops_.is_failure_known = true;  // what ends this call was the coordinator's to say
  distribute::Server& server = loops_.cluster.own_server();
  LoopResult result = [&] {
    try {
      return wait_for_result(server, call_->number, [this] { loops_.table.check_coordinator(); });
    } catch (...) {
      leave(server.core().task());
      throw;
    }
  }();
  acknowledge(server.coordination(), server.core().task(), call_->number);
  loops_.table.learn_generation(result.generation);
  loops_.is_left_alone = result.is_last;
  const bool failed_before = result.error != nullptr && result.name.empty();
  if (result.name != call_->name && !failed_before) {
    loops_.is_failure_known = false;
    throw FailedPreconditionError(str("call ", call_->number, " of the coordinator was ",
                                      quoted(result.name), ", but here it is ", quoted(call_->name),
                                      ": every task must make the same calls in the same order"));
  }
  if (result.error != nullptr) std::rethrow_exception(result.error);
  loops_.is_failure_known = false;
  if (result.is_left_out) {
    log_warning("what ", quoted(call_->name), " returned is too large to be kept for other tasks: ",
                "in this one it returns nothing");
  }
  return result.value;
}

// An error of this task alone: the call goes on, and its steps on other workers. What still runs
// here uses what ends with the program.
void ServerRunner::leave(const TaskId& self) {
  loops_.table.give_up(*call_);
  if (wait_until_idle(loops_.cluster.spec(), self, steady_clock::now() + kMostToLeave)) return;
  log_warning("this task ends while a step of ", quoted(call_->name), " still runs in it, after ",
              kMostToLeave.count(), " s");
}

void ServerRunner::fail(const std::exception_ptr& error) noexcept {
  if (call_->has_run) return;
  try {
    switch (loops_.cluster.role()) {
      case ClusterRole::kCoordinator:
        return tell(error);
      case ClusterRole::kWorker:
      case ClusterRole::kPs:
        return meet_coordinator(error);
      case ClusterRole::kEvaluator:
        return;
    }
  } catch (const std::exception& other) {
    log_info(untold_text("the other tasks", error, other));
  }
}

void ServerRunner::tell(const std::exception_ptr& error) {
  distribute::Coordination* others = loops_.cluster.coordination();
  if (others == nullptr) return;
  loops_.published.add(*others, call_->number,
                       {.name = call_->name,
                        .generation = loops_.cluster.generation(),
                        .value = {},
                        .error = error});
}

// The coordinator, which runs the same program, may wait for this task before it comes to the
// error.
void ServerRunner::meet_coordinator(const std::exception_ptr& error) {
  log_warning(record_error(error).message,
              " (this task ends when the coordinator has come to the same place, or in ",
              kMostToMeet.count(), " s)");
  loops_.is_left_alone = true;
  loops_.table.give_up(*call_);
  distribute::Server& server = loops_.cluster.own_server();
  tell_failure(server, error);
  loops_.is_failure_known = true;
  const LoopResult result = wait_for_result(
      server, call_->number, [] {}, steady_clock::now() + kMostToMeet);
  loops_.is_left_alone = result.is_last;
  tell_failure_again(server, error);
  acknowledge(server.coordination(), server.core().task(), call_->number);
}

CoordinatorCore& ServerRunner::coordinator() {
  if (call_->coordinator == nullptr) call_->coordinator = loops_.leader.coordinator();
  if (call_->coordinator == nullptr) {
    distribute::coordinator::ClusterCoordinatorOptions options;
    options.window = kWindow;
    options.closure_timeout = kMostPerStep;
    call_->coordinator = LeaderSide::make_coordinator({strategy_, &loops_.leader}, options);
    call_->owns_coordinator = true;
  }
  loops_.table.serve(*call_);
  return *call_->coordinator;
}

void ServerRunner::wait_for_room() {
  const int workers = loops_.cluster.num_workers();
  const int64_t most = workers * (kWindow + kWaitingPerWorker);
  auto under_way = under_way_->lock();
  const bool has_room = under_way.wait_until(steady_clock::now() + kMostPerStep, [&] {
    return under_way->steps < most || under_way->has_failed;
  });
  under_way->has_failed = false;
  if (has_room) return;
  throw DeadlineExceededError(str("no worker has ended a step of ", quoted(call_->name), " in ",
                                  kMostPerStep.count(), " hours; ", under_way->steps,
                                  " are under way"));
}

std::future<Structure> ServerRunner::schedule(const std::shared_ptr<const StepFunction>& step,
                                              const std::shared_ptr<StepInput>& input) {
  auto* own = dynamic_cast<ServerInput*>(input.get());
  if (own == nullptr || own->strategy() != strategy_.get()) {
    throw InvalidArgumentError(str("step ", quoted(step->name),
                                   " was scheduled on another strategy's input; make it with "
                                   "make_input() of this runner"));
  }
  declare(step);
  wait_for_room();
  ++under_way_->lock()->steps;
  const auto end = [all = under_way_](bool failed) {
    const auto under_way = all->change();
    --under_way->steps;
    under_way->has_failed |= failed;
  };
  std::shared_ptr<RemoteResult> result;
  try {
    result = coordinator().schedule_step(kRunStep,
                                         arguments_of(*call_, step->name, own->key(), own->take()));
  } catch (...) {
    end(false);
    throw;
  }
  auto promise = std::make_shared<std::promise<Structure>>();
  std::future<Structure> future = promise->get_future();
  result->on_end([promise, end, pass = own->found()](const RemoteResult& ended) {
    bool failed = true;
    try {
      const Structure value = ended.get(steady_clock::now(), "a step that has ended");
      if (value.size() > 1) {
        promise->set_value(value[1]);
        failed = false;
      } else {
        pass->has_ended = true;
        failed = false;
        throw OutOfRangeError("the step found no data: the pass is at its end");
      }
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
    end(failed);
  });
  return future;
}

void ServerRunner::join() {
  if (call_->coordinator == nullptr) return;
  call_->coordinator->queue().join(steady_clock::now() + kMostPerJoin);
}

std::shared_ptr<StepInput> ServerRunner::add_input(ServerInput::Source source) {
  size_t slot = 0;  // the first that no input has, so that an input made anew gets its old one
  while (slot < inputs_.size() && !inputs_[slot].expired()) ++slot;
  const LoopTable::InputKey key{number_, static_cast<int64_t>(slot)};
  auto input = std::make_shared<ServerInput>(strategy_, loops_.workers.input_context(0), call_, key,
                                             std::move(source));
  inputs_.resize(std::max(inputs_.size(), slot + 1));
  inputs_[slot] = input;
  return input;
}

std::shared_ptr<StepInput> ServerRunner::make_input(const data::Dataset& dataset) {
  const std::weak_ptr<StrategyCore> weak = strategy_;
  // A worker that was started again would have to read all that an endless dataset gave before.
  const bool is_endless = dataset.cardinality() == data::kInfiniteCardinality;
  const auto make = [weak, dataset, is_endless](const InputContext& context) {
    const DistributedDataset all = distribute_dataset(weak.lock(), dataset, {});
    if (!is_endless || context.num_input_pipelines == 1) return all;
    return all.auto_shard(context.num_input_pipelines, context.input_pipeline_id);
  };
  return add_input({.make = make, .is_numbered = !is_endless, .is_endless = is_endless});
}

std::shared_ptr<StepInput> ServerRunner::make_input(const DatasetFunction& fn,
                                                    const distribute::InputOptions& options) {
  const std::weak_ptr<StrategyCore> weak = strategy_;
  const auto make = [weak, fn, options](const InputContext& context) {
    return distribute_from_function(
        weak.lock(), [&](const InputContext&) { return fn(context); }, options);
  };
  return add_input({.make = make, .is_numbered = false});
}

std::shared_ptr<StepInput> ServerRunner::make_input(const DistributedDataset& dataset) {
  if (dataset.core() != strategy_) {
    throw InvalidArgumentError(
        "a dataset that was distributed by another strategy was given to a model of a "
        "ParameterServerStrategy; distribute it with the strategy in whose scope the model was "
        "made");
  }
  const bool is_endless = dataset.cardinality() == data::kInfiniteCardinality;
  return add_input({.make = [dataset](const InputContext&) { return dataset; },
                    .is_numbered = !is_endless,
                    .is_endless = is_endless});
}

}  // namespace cohort::internal
