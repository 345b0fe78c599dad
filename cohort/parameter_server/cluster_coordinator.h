// Hands steps out to the workers of a ParameterServerStrategy, and outlives the loss of any of
// them.
//
//   tf::distribute::coordinator::ClusterCoordinator coordinator(strategy);
//   auto iterator = coordinator.create_per_worker_dataset(dataset_fn).iterator();
//   for (int i = 0; i < steps; ++i) coordinator.schedule(step_fn, iterator);   // returns at once
//   coordinator.join();
//   double loss = coordinator.schedule(loss_fn).fetch().tensor().item<double>();
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/core/structure/to_structure.h"
#include "cohort/distribute/values/values.h"
#include "cohort/parameter_server/coordinator/coordinator_options.h"
#include "cohort/parameter_server/parameter_server_strategy.h"

namespace cohort::internal {
class CoordinatorCore;
class InputHandle;
class RemoteResult;
}  // namespace cohort::internal

namespace cohort::distribute::coordinator {

enum class RemoteValueStatus { NOT_READY, ABORTED, READY };

// What a scheduled function returns, some time. A handle. Thread safety: any thread.
class COHORT_API RemoteValue {
 public:
  // The value of no function yet: assign what schedule() returns. Until then every other use is a
  // FailedPrecondition.
  RemoteValue() = default;
  explicit RemoteValue(std::shared_ptr<internal::RemoteResult> result);
  // Whether it is that of a function.
  explicit operator bool() const { return !result_.empty(); }
  // Waits. The values are copied from the worker when the function ends, so that they outlive it;
  // each call gives copies of its own, which may be written to.
  // Errors: that of the function; Cancelled (it was cancelled because of another's error, or the
  // coordinator has ended); that of schedule, join and done, where a ps task or all workers are
  // lost; DeadlineExceeded.
  Structure fetch(std::chrono::milliseconds timeout = std::chrono::hours(1)) const;
  Structure get(std::chrono::milliseconds timeout = std::chrono::hours(1)) const {
    return fetch(timeout);
  }
  RemoteValueStatus status() const;

  // For the library's own use.
  const std::shared_ptr<internal::RemoteResult>& result() const;

 private:
  internal::Handle<internal::RemoteResult, "RemoteValue"> result_;
};

// The input of every worker, as an argument of schedule(): each takes its own. Copies are of the
// same one. The workers let go of it, within seconds, when the last copy has gone and all functions
// that take it have ended.
class PerWorkerIterator {
 public:
  explicit PerWorkerIterator(std::shared_ptr<const internal::InputHandle> handle)
      : handle_(std::move(handle)) {}

  // For the library's own use.
  const std::shared_ptr<const internal::InputHandle>& handle() const { return handle_; }

 private:
  internal::Handle<const internal::InputHandle, "PerWorkerIterator"> handle_;
};

// A value of every worker, as an argument of schedule(): the function takes that of the worker on
// which it runs. ClusterCoordinator::fetch reads all of them. It stays as long as a
// PerWorkerIterator.
class PerWorkerValue {
 public:
  explicit PerWorkerValue(std::shared_ptr<const internal::InputHandle> handle)
      : handle_(std::move(handle)) {}

  // For the library's own use.
  const std::shared_ptr<const internal::InputHandle>& handle() const { return handle_; }

 private:
  internal::Handle<const internal::InputHandle, "PerWorkerValue"> handle_;
};

// Thread safety: as ClusterCoordinator.
class COHORT_API PerWorkerDataset {
 public:
  // `source`: as long as somebody holds it there is the function.
  PerWorkerDataset(std::shared_ptr<internal::CoordinatorCore> core,
                   std::shared_ptr<internal::ParameterServerCore> strategy, std::string function,
                   std::shared_ptr<const void> source);
  // Lets every worker make its dataset and begin a pass over it; also those that come back after
  // they were lost.
  PerWorkerIterator iterator() const;
  // The spec of the components that a function gets from a worker's iterator. The function that
  // makes the dataset runs here, as on worker 0.
  // Errors: what it throws; those of data::Dataset::element_spec; InvalidArgument (it makes
  // variables).
  PerReplicaSpec element_spec() const;

 private:
  internal::Handle<internal::CoordinatorCore, "PerWorkerDataset"> core_;
  internal::Handle<internal::ParameterServerCore, "PerWorkerDataset"> strategy_;
  std::string function_;
  std::shared_ptr<const void> source_;
};

// How one closure failed.
struct FailedClosure {
  uint64_t closure = 0;  // its number: 1 for the first that this coordinator scheduled
  std::string function;
  int worker = -1;
  std::string error;
};

// On which worker the calling function runs: in a function that a coordinator has scheduled or that
// makes a worker's input. Errors: FailedPrecondition (elsewhere).
COHORT_API int get_current_worker_index();

// A handle, of which a strategy's are all of the same one: a second is made as TensorFlow makes it,
// and copies are alike. When the last one ends, all that has not ended is cancelled; where workers
// of this process run functions, it waits for these (ClusterCoordinatorOptions::end_timeout), other
// than in such a function.
// Thread safety: any thread.
//
// Errors: schedule, join and done throw the first error of a function since one was thrown, after
// they have cancelled what is queued and waited for what is under way. A lost worker is no error:
// its closures run on others, and the updates of each closure are applied once. A lost ps task is a
// PSUnavailableError that names it and the last checkpoint, each time: restart from there. Where
// what a function takes of its worker could not be made, its error is a ClosureInputError.
class COHORT_API ClusterCoordinator {
 public:
  // In the coordinator's program. Of the strategy's coordinator where it has one, whatever its
  // options; else of a new one with the default options.
  // Errors: FailedPrecondition (this process is no coordinator; a call of fit, evaluate or predict
  // hands out steps).
  explicit ClusterCoordinator(const ParameterServerStrategy& strategy);
  // Errors: also InvalidArgument (no such options), FailedPrecondition (the strategy has a
  // coordinator with others).
  ClusterCoordinator(const ParameterServerStrategy& strategy,
                     const ClusterCoordinatorOptions& options);

  // Arguments: iterators first, then tensors, numbers, strings, structures, workers' values, and
  // results of functions that were scheduled before (the function then runs once they are there; if
  // one of them fails, it is cancelled). Values are those of the moment of the call: it copies
  // tensors that somebody else holds. One structure alone is what Strategy::run makes of it: the
  // function takes it as it is, or its members. The function runs on some worker, at least once;
  // what it assigns to variables takes effect once: in steps, and outside of them where it makes
  // the same assignments each time.
  // Errors: also InvalidArgument (a function that makes an input; an undefined tensor),
  // Unimplemented (a sparse tensor, or a dtype that cannot be sent: names the argument),
  // DeadlineExceeded (the queue stays full for an hour), FailedPrecondition (in a scheduled
  // function).
  template <class... Arguments>
  RemoteValue schedule(const WorkerFunction& function, Arguments&&... arguments) const {
    Inputs inputs;
    std::vector<Value> rest;
    (add_argument(inputs, rest, std::forward<Arguments>(arguments)), ...);
    return schedule_erased(function, std::move(inputs), std::move(rest));
  }
  // The same with any function, which may refer to the program's own objects: these must stay until
  // it has run or the last handle of this has ended, and it may run at the same time on several
  // workers. For workers of this process.
  // Errors: also FailedPrecondition (the workers are other processes).
  template <class Fn, class... Arguments>
  requires(!std::is_same_v<std::remove_cvref_t<Fn>, WorkerFunction> &&
           !std::is_convertible_v<Fn, WorkerFunction>) RemoteValue
      schedule(Fn function, Arguments&&... arguments)
  const {
    Inputs inputs;
    std::vector<Value> rest;
    (add_argument(inputs, rest, std::forward<Arguments>(arguments)), ...);
    return schedule_captured(
        internal::structure_function(
            ParameterServerStrategy::with_input(std::move(function)),
            {.function = "the scheduled function", .input = "schedule's arguments"}),
        std::move(inputs), std::move(rest));
  }
  // Waits until all that was scheduled has ended. Errors: also FailedPrecondition (in a scheduled
  // function).
  void join() const;
  void join(std::chrono::milliseconds timeout) const;
  // Whether it has. Errors: as join.
  bool done() const;

  // `function` makes one worker's input: see ParameterServerStrategy::function. Where it shuffles
  // without a seed, each worker has an order of its own; but under random::set_seed, as in
  // TensorFlow, workers in processes of their own have the same one, and those of one process draw
  // one seed after another. A function that divides one order by Dataset::shard gives its shuffle a
  // seed, which holds everywhere.
  // Errors: InvalidArgument (it makes none).
  PerWorkerDataset create_per_worker_dataset(const WorkerFunction& function) const;
  // The same of a dataset, or of a function over the program's own objects, for workers of this
  // process: it goes with the last copy of the result and the last of its iterators. Every worker
  // reads all of a dataset, in an order of its own where it shuffles without a seed, also under
  // random::set_seed; all of a DistributedDataset in the same order.
  // Errors: FailedPrecondition (the workers are other processes).
  PerWorkerDataset create_per_worker_dataset(const data::Dataset& dataset) const;
  PerWorkerDataset create_per_worker_dataset(const DistributedDataset& dataset) const;
  template <class Fn>
  requires(ParameterServerStrategy::is_dataset_function<Fn>()) PerWorkerDataset
      create_per_worker_dataset(Fn function)
  const {
    return create_per_worker_dataset(strategy_->function(new_input_name(), std::move(function)));
  }

  // Runs `function`, which takes nothing, once on each worker, and again when one comes back after
  // it was lost. What it returns, a structure of tensors and strings, stays there as the value of
  // that worker; what it assigns to variables counts each time that it runs. Its error is a
  // ClosureInputError of the functions that use the value, and of no other. Objects of other types
  // (tables, connections) are each worker's own where functions refer to them: in its process, of
  // which it is the only worker; workers of one process tell theirs by get_current_worker_index().
  // This function is the place to make them anew; no other one runs on the worker meanwhile.
  // Errors: InvalidArgument (it makes an input).
  PerWorkerValue create_per_worker_value(const WorkerFunction& function) const;

  // Exact totals over all of the data, whatever happens to workers: `function` takes the number of
  // a shard and how many there are (Dataset::shard), and returns that shard's totals, as a
  // structure of numbers. Each shard's come back with its closure and count once, however often it
  // runs. Returns their sums in their own dtypes, added up in int64 or float64. `num_shards`: some
  // for each worker, so that a lost one costs little. Waits. Errors: those of join; InvalidArgument
  // (no shards; totals of different forms or shapes, or that are no numbers: names the function and
  // the shard; a sum that its dtype cannot hold).
  Structure sum_over_shards(const WorkerFunction& function, int64_t num_shards) const;

  Structure fetch(const RemoteValue& value) const { return value.fetch(); }
  std::vector<Structure> fetch(const std::vector<RemoteValue>& values) const;
  // The values of all workers, by their index, as they are between two closures of each. Waits for
  // workers that are lost, and for what runs on the others.
  // Errors: ClosureInputError (a value could not be made); Unavailable (a worker is given up);
  // those of schedule, join and done where a ps task or all workers are lost; InvalidArgument (of
  // another coordinator); FailedPrecondition (in a scheduled function); DeadlineExceeded.
  std::vector<Structure> fetch(const PerWorkerValue& value,
                               std::chrono::milliseconds timeout = std::chrono::hours(1)) const;

  // All errors of functions since one was last thrown; if there are none, those of the run before.
  std::vector<FailedClosure> errors() const;
  std::vector<WorkerState> workers() const;
  const ParameterServerStrategy& strategy() const;
  // How many updates had come between the values by which a gradient was taken and its own update,
  // on average over those that were pushed since this program took the ps tasks; 0: there were
  // none. Asks the ps tasks. Of looked-up rows the oldest of each shard counts. Errors:
  // Unavailable, DeadlineExceeded.
  double mean_staleness() const;

 private:
  // An argument, or the result that will be one.
  struct Value {
    Structure value = {};
    std::shared_ptr<internal::RemoteResult> result = nullptr;
    std::shared_ptr<const internal::InputHandle> of_worker =
        nullptr;  // instead, the worker's value
  };
  using Inputs = std::vector<std::shared_ptr<const internal::InputHandle>>;
  template <class Argument>
  static void add_argument(Inputs& inputs, std::vector<Value>& rest, Argument&& argument) {
    if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, PerWorkerIterator>) {
      inputs.push_back(argument.handle());
    } else if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, RemoteValue>) {
      rest.push_back({.result = argument.result()});
    } else if constexpr (std::is_same_v<std::remove_cvref_t<Argument>, PerWorkerValue>) {
      rest.push_back({.of_worker = argument.handle()});
    } else {
      rest.push_back({.value = internal::to_structure(std::forward<Argument>(argument))});
    }
  }
  RemoteValue schedule_erased(const WorkerFunction& function, Inputs inputs,
                              std::vector<Value> arguments) const;
  RemoteValue schedule_captured(internal::StructureFunction<> function, Inputs inputs,
                                std::vector<Value> arguments) const;
  // Errors: FailedPrecondition (the workers are other processes).
  std::string new_input_name() const;

  std::shared_ptr<const ParameterServerStrategy> strategy_;
  std::shared_ptr<internal::CoordinatorCore> core_;  // which the last of these stops
};

}  // namespace cohort::distribute::coordinator
