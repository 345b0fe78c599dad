// A strategy decides on how many devices a training step runs. The rest of the program stays the
// same.
//
//   MirroredStrategy strategy;
//   auto dist_dataset = strategy.experimental_distribute_dataset(dataset);
//   for (const auto& batch : dist_dataset) {
//     auto losses = strategy.run(train_step, batch);                    // PerReplica<Tensor>
//     total += strategy.reduce(ReduceOp::SUM, losses).item<double>();
//   }
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/distribute/core/run_options.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/step/scope.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/distribute/strategies/strategy_extended.h"
#include "cohort/distribute/tasks/named_functions.h"
#include "cohort/distribute/values/reduce_axis.h"
#include "cohort/distribute/values/reduced.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::data {
class Dataset;
}

namespace cohort::distribute {

namespace cluster_resolver {
class ClusterResolver;
}
class DistributedDataset;
class InputIterator;
struct InputOptions;
enum class InputReplicationMode : int;

// Describes a replica to the function of experimental_distribute_values_from_function.
struct ValueContext {
  int replica_id_in_sync_group = 0;
  int num_replicas_in_sync = 1;
};
// tf.distribute.ValueContext(replica id R,  total replicas in sync: N)
COHORT_API std::ostream& operator<<(std::ostream& out, const ValueContext& context);

// The guides' name.
namespace experimental {
using distribute::ValueContext;
}  // namespace experimental

// A handle: copies name the same strategy, so that strategies can be chosen and kept in containers:
//   Strategy strategy = replicas > 1 ? Strategy(MirroredStrategy()) : Strategy(one_device);
// Variables, models and datasets made under a strategy keep it alive.
// Thread safety: const calls from any thread, but only one `run` at a time.
class COHORT_API Strategy {
 public:
  explicit Strategy(std::shared_ptr<internal::StrategyCore> core) : core_(std::move(core)) {}
  int num_replicas_in_sync() const;
  StrategyExtended extended() const;
  // The resolver by which a strategy over a cluster has learnt of its tasks; nullptr for others.
  std::shared_ptr<const cluster_resolver::ClusterResolver> cluster_resolver() const;

  // For train::Checkpoint: the random generators of this process's replicas, which steps draw from.
  std::shared_ptr<train::Trackable> trackable() const;

  // Makes this strategy current on the calling thread for the scope's lifetime.
  // Errors: FailedPrecondition (another strategy's scope is open; called in a replica).
  Scope scope() const;

  // Runs fn once on each replica of this process, at the same time, and waits for all. fn may take
  // a ReplicaContext& first. PerReplica and Mirrored arguments are passed by component, all others
  // whole. If run gets a single Structure and fn takes several arguments, the structure's members
  // are passed one by one. Returns PerReplica<Result> with tensors detached from their graph; a
  // Variable result is returned as itself; void for void.
  // Errors: what fn throws, on the lowest replica that failed by itself; FailedPrecondition (inside
  // another run, or while one is running; replicas made different numbers of collective calls),
  // DeadlineExceeded (names the replica), InvalidArgument (components of an argument, what libtorch
  // threw). Errors of Cohort's classes, and libtorch's, name the replica whose own they are.
  template <class Fn, class... Args>
  requires(!std::is_same_v<std::remove_cvref_t<Fn>, RunOptions>) auto run(Fn&& fn,
                                                                          Args&&... args) const {
    (void)internal::StepForm<Fn, Args...>();
    internal::check_fault<internal::kStepFault<Fn, Args...>>();
    if constexpr (internal::kStepFault<Fn, Args...> == internal::CallFault::kNone) {
      return internal::run_on_replicas<Fn, Args...>(*core_, RunOptions{}, static_cast<Fn&&>(fn),
                                                    static_cast<Args&&>(args)...);
    }
  }
  template <class Fn, class... Args>
  auto run(const RunOptions& options, Fn&& fn, Args&&... args) const {
    (void)internal::StepForm<Fn, Args...>();
    internal::check_fault<internal::kStepFault<Fn, Args...>>();
    if constexpr (internal::kStepFault<Fn, Args...> == internal::CallFault::kNone) {
      return internal::run_on_replicas<Fn, Args...>(*core_, options, static_cast<Fn&&>(fn),
                                                    static_cast<Args&&>(args)...);
    }
  }

  // Combines the replicas' tensors into one, on the CPU: SUM or MEAN across replicas, added in
  // replica order. With `axis` each replica's value is first summed over those dimensions, and MEAN
  // divides by the number of elements summed, so that batches weigh by their size. A plain value
  // stands for equal values on all replicas: MEAN returns it. Where there are several tasks it is
  // one value of each task, and SUM and MEAN go over the tasks. In cross-replica context or
  // outside. MEAN of integers divides truly, as in TensorFlow: int32 and int64 give float64,
  // smaller ones float32.
  // Errors: FailedPrecondition (in a replica: use ReplicaContext::all_reduce), InvalidArgument
  // (shapes differ between replicas, axis out of range, MEAN of bool; a sum that its integer dtype
  // cannot hold, up to 32 bits; SUM of a plain value with several replicas), those of libtorch.
  Tensor reduce(ReduceOp op, const PerReplica<Tensor>& value,
                const ReduceAxis& axis = std::nullopt) const;
  Tensor reduce(ReduceOp op, const Mirrored<Tensor>& value,
                const ReduceAxis& axis = std::nullopt) const;
  Tensor reduce(ReduceOp op, const Tensor& value, const ReduceAxis& axis = std::nullopt) const;
  // Leaf by leaf. Errors: also Unimplemented (a RaggedTensor).
  Structure reduce(ReduceOp op, const PerReplica<Structure>& value,
                   const ReduceAxis& axis = std::nullopt) const;
  // Numbers reduce to a tensor of shape []; pairs, tuples, arrays, vectors and plain structs member
  // by member, to one of their own kind.
  template <internal::ReducesByMember T>
  internal::Reduced<T> reduce(ReduceOp op, const PerReplica<T>& value,
                              const ReduceAxis& axis = std::nullopt) const {
    return internal::from_reduced<T>(reduce(op, internal::exact_structures(value), axis));
  }
  template <class Value>
  auto reduce(std::string_view op, const Value& value,
              const ReduceAxis& axis = std::nullopt) const {
    return reduce(parse_reduce_op(op), value, axis);
  }

  // The replicas' values concatenated along `axis`, in replica order, on the CPU.
  // Errors: FailedPrecondition (in a replica), InvalidArgument (rank 0, axis outside [0, rank),
  // other dimensions or dtypes differ).
  Tensor gather(const PerReplica<Tensor>& value, int64_t axis) const;
  StringTensor gather(const PerReplica<StringTensor>& value, int64_t axis) const;
  // Gathers a plain value of each task; the value itself if there is one task.
  Tensor gather(const Tensor& value, int64_t axis) const;
  // The same for each leaf or member. RaggedTensors are joined row by row along axis 0.
  // Errors: also Unimplemented (a RaggedTensor along another axis).
  Structure gather(const PerReplica<Structure>& value, int64_t axis) const;
  template <internal::ReducesByMember T>
  internal::Reduced<T> gather(const PerReplica<T>& value, int64_t axis) const {
    return internal::from_reduced<T>(gather(internal::exact_structures(value), axis));
  }

  // This process's components, in replica order; for a plain value of any kind, that value alone.
  template <class T>
  std::vector<T> experimental_local_results(const PerReplica<T>& value) const {
    return std::vector<T>(value.values().begin(), value.values().end());
  }
  template <class T>
  std::vector<T> experimental_local_results(const Mirrored<T>& value) const {
    return std::vector<T>(value.values().begin(), value.values().end());
  }
  std::vector<Tensor> experimental_local_results(const Variable& variable) const {
    return experimental_local_results(variable.components());
  }
  template <class T>
  std::vector<T> experimental_local_results(const T& value) const {
    return std::vector<T>(1, value);
  }

  // Calls fn(ValueContext) once for each replica of this process, in replica order, on this thread.
  // A copy of fn may be called again in run, for a replica that has moved here from a lost worker.
  template <class Fn>
  auto experimental_distribute_values_from_function(Fn&& fn) const {
    using T = std::remove_cvref_t<std::invoke_result_t<Fn&, const ValueContext&>>;
    typename PerReplica<T>::Values values;
    for (size_t i = 0; i < num_local_replicas(); ++i) values.push_back(fn(value_context(i)));
    if constexpr (internal::kIsResult<T> && std::is_copy_constructible_v<std::decay_t<Fn>>) {
      if (replicas_move()) {
        const auto value_of = [fn = std::decay_t<Fn>(fn),
                               count = num_replicas_in_sync()](int replica) mutable {
          return internal::to_structure(fn(ValueContext{replica, count}));
        };
        const int first = value_context(0).replica_id_in_sync_group;
        return PerReplica<T>(std::move(values), internal::source_of(first, value_of));
      }
    }
    return PerReplica<T>(std::move(values));
  }

  // Splits each (global) batch of the dataset over the replicas: see distributed_dataset.h.
  // Errors: InvalidArgument (elements that are not batches; options that do not fit; replicas that
  // cannot be divided by the input workers), NotFound (AutoShardPolicy::FILE without files),
  // Unimplemented (PER_REPLICA). COLLECTIVE over tasks.
  DistributedDataset experimental_distribute_dataset(const data::Dataset& dataset) const;
  DistributedDataset experimental_distribute_dataset(const data::Dataset& dataset,
                                                     const InputOptions& options) const;
  // Calls fn(InputContext), on this thread, once per input worker (with PER_REPLICA once per
  // replica). The dataset that it returns has batches for one replica each; nothing is split,
  // sharded or read ahead. COLLECTIVE over tasks.
  // Errors: InvalidArgument (options that do not fit), what fn throws.
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& fn) const;
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& fn,
                                                       const InputOptions& options) const;
  // The same, under its name in older programs.
  DistributedDataset experimental_distribute_datasets_from_function(
      const DatasetFunction& fn) const;
  DistributedDataset experimental_distribute_datasets_from_function(
      const DatasetFunction& fn, const InputOptions& options) const;

  // For programs of the first version of this model: see legacy.h.
  InputIterator make_dataset_iterator(const data::Dataset& dataset) const;
  // A dataset of the arrays' rows: Dataset::from_tensor_slices.
  data::Dataset experimental_make_numpy_dataset(const Structure& arrays) const;
  InputIterator make_input_fn_iterator(const DatasetFunction& fn) const;
  // Errors: InvalidArgument (any mode but PER_WORKER).
  InputIterator make_input_fn_iterator(const DatasetFunction& fn, InputReplicationMode mode) const;
  // Calls run with fn and the next batch. Errors: also OutOfRange at the end.
  template <class Fn>
  auto experimental_run(Fn&& fn, InputIterator& input) const {
    return run(std::forward<Fn>(fn), next_input(input));
  }

  // Two handles of one strategy.
  bool operator==(const Strategy& other) const { return core_ == other.core_; }
  const std::shared_ptr<internal::StrategyCore>& core() const { return core_.pointer(); }

  // A function that other tasks of the cluster call by its name: NamedFunctions::add, of this
  // strategy. The same strategy and names in every task.
  template <class Fn>
  NamedFunction function(const std::string& name, Fn&& fn) const {
    return named_functions().add(name, std::forward<Fn>(fn));
  }
  // Lets the server's task answer calls of those functions: NamedFunctions::serve.
  void serve(Server& server) const { named_functions().serve(server); }

 private:
  NamedFunctions& named_functions() const;
  size_t num_local_replicas() const;
  bool replicas_move() const;
  ValueContext value_context(size_t local_replica) const;
  static PerReplica<Structure> next_input(InputIterator& input);

  internal::Handle<internal::StrategyCore, "Strategy"> core_;
};

}  // namespace cohort::distribute
