// Training with parameter servers: ps tasks keep the variables, workers run steps each at their own
// pace, and a coordinator hands the steps out.
//
//   tf::distribute::cluster_resolver::TFConfigClusterResolver resolver;
//   tf::distribute::ParameterServerStrategy strategy(resolver, {.variable_partitioner =
//       tf::distribute::partitioners::MinSizePartitioner({.max_shards = 2})});
//   // model and optimizer: made under strategy.scope(), in every task alike
//   auto step = strategy.function("step", [&](DistributedIterator& it) { ... });
//   if (resolver.task_type() == "worker" || resolver.task_type() == "ps") {
//     return tf::distribute::Server(resolver).join();
//   }
//   tf::distribute::coordinator::ClusterCoordinator coordinator(strategy);
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/cluster/cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/core/export.h"
#include "cohort/core/structure/callable_traits.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/parameter_server/variables/partitioner.h"
#include "cohort/parameter_server/variables/variable_placement.h"

namespace cohort::internal {
class ParameterServerCore;
}

namespace cohort::distribute {

struct ParameterServerStrategyOptions {
  // Into how many shards each variable is divided. None: none is.
  partitioners::Partitioner variable_partitioner = nullptr;
  // To which ps task each shard goes. LEAST_LOADED balances memory where sizes differ; every task
  // must choose the same.
  VariablePlacement variable_placement = VariablePlacement::ROUND_ROBIN;
  // The replicas of each worker, on its own devices of these names: "GPU:0", "CPU:1". Empty: all
  // its GPUs, or one CPU.
  std::vector<std::string> worker_devices = {};
  // How long a read or a write of variables may take.
  std::chrono::milliseconds timeout = std::chrono::minutes(1);
  // Options of the chief's own server. A coordinator without one takes its keepalive times from
  // here.
  ServerOptions server_options = {};
};

// A function that the coordinator schedules on workers, or that makes a worker's input.
class WorkerFunction {
 public:
  WorkerFunction(std::string name, bool makes_input)
      : name_(std::move(name)), makes_input_(makes_input) {}
  const std::string& name() const { return name_; }
  bool makes_input() const { return makes_input_; }

 private:
  std::string name_;
  bool makes_input_;
};

// A step reads variables as they were when it began, with what it has assigned, and what its
// optimizers have done to variables and slots, since. Both come to the ps tasks after it, in the
// program's order.
class COHORT_API ParameterServerStrategy : public Strategy {
 public:
  // `resolver` names the cluster: workers, ps tasks, perhaps a chief, which coordinates, and an
  // evaluator. When the last handle of the chief's strategy ends, other than by an exception, so do
  // the servers of workers and ps tasks. Where it names no task, this program is the coordinator of
  // an in-process cluster, whose servers it has made. In the chief: starts its server and waits for
  // all tasks.
  // Errors: InvalidArgument (no workers or no ps tasks, other jobs; names what is wrong), those of
  // Server and Coordination::wait_for_start; in the chief also that of a task that has failed
  // before its first step, where others have not come some seconds later (names the task).
  explicit ParameterServerStrategy(const cluster_resolver::ClusterResolver& resolver,
                                   const ParameterServerStrategyOptions& options = {});

  // A function that ClusterCoordinator::schedule names; the same in every task. It may take
  // DistributedIterator& first, the worker's input, or several, and then what a named function
  // takes (without `auto`, unless it takes one input and nothing else). A function of an
  // InputContext, or of nothing, that returns a Dataset or a DistributedDataset makes inputs.
  // Errors: those of NamedFunctions::add.
  template <class Fn>
  WorkerFunction function(const std::string& name, Fn fn) const {
    if constexpr (kMakesInput<Fn>) {
      add_input(name, [fn = std::move(fn)](const InputContext& context) {
        if constexpr (std::is_invocable_v<const Fn&, const InputContext&>) {
          return fn(context);
        } else {
          return fn();
        }
      });
      return {name, true};
    } else {
      Strategy::function(name, with_input(std::move(fn)));
      return {name, false};
    }
  }

  // For the library's own use: a function of the worker's inputs first, where `fn` asks for any,
  // and of what a named function takes.
  template <class Fn>
  static auto with_input(Fn fn) {
    if constexpr (std::is_invocable_v<const Fn&, DistributedIterator&>) {
      return [fn = std::move(fn)] { return fn(input(0)); };
    } else if constexpr (internal::HasCallableTraits<Fn>) {
      using Arguments = typename internal::CallableTraits<Fn>::Arguments;
      constexpr size_t kInputs = num_inputs<Arguments>();
      constexpr size_t kRest = std::tuple_size_v<Arguments> - kInputs;
      if constexpr (kInputs == 0) {
        return fn;
      } else {
        return with_inputs<Arguments>(std::move(fn), std::make_index_sequence<kInputs>(),
                                      std::make_index_sequence<kRest>());
      }
    } else {
      return fn;
    }
  }
  template <class Fn>
  static constexpr bool is_dataset_function() {
    return makes_input<Fn>();
  }

  const std::shared_ptr<internal::ParameterServerCore>& parameter_server_core() const {
    return core_;
  }

 private:
  template <class Result>
  static constexpr bool kIsDataset =
      std::is_same_v<Result, data::Dataset> || std::is_same_v<Result, DistributedDataset>;
  template <class Fn>
  static constexpr bool makes_input() {
    if constexpr (std::is_invocable_v<const Fn&, const InputContext&>) {
      return kIsDataset<std::invoke_result_t<const Fn&, const InputContext&>>;
    } else if constexpr (std::is_invocable_v<const Fn&>) {
      return kIsDataset<std::invoke_result_t<const Fn&>>;
    } else {
      return false;
    }
  }
  template <class Fn>
  static constexpr bool kMakesInput = makes_input<Fn>();

  ParameterServerStrategy(std::shared_ptr<internal::ParameterServerCore> core);

  // How many inputs are the first of a function's arguments.
  template <class Arguments, size_t kBegin = 0>
  static constexpr size_t num_inputs() {
    if constexpr (kBegin < std::tuple_size_v<Arguments>) {
      if constexpr (std::is_same_v<std::tuple_element_t<kBegin, Arguments>, DistributedIterator>) {
        return num_inputs<Arguments, kBegin + 1>();
      }
    }
    return kBegin;
  }
  template <class Arguments, class Fn, size_t... kInput, size_t... kRest>
  static auto with_inputs(Fn fn, std::index_sequence<kInput...>, std::index_sequence<kRest...>) {
    return [fn = std::move(fn)](
               const std::tuple_element_t<sizeof...(kInput) + kRest, Arguments>&... rest) {
      return fn(input(kInput)..., rest...);
    };
  }

  // An input of the closure that the calling thread runs. Errors: FailedPrecondition (it has no
  // such input).
  static DistributedIterator& input(size_t index);
  template <class Make>
  void add_input(const std::string& name, Make make) const {
    using Result = std::invoke_result_t<const Make&, const InputContext&>;
    if constexpr (std::is_same_v<Result, data::Dataset>) {
      add_dataset_function(name, std::move(make));
    } else {
      add_distributed_function(name, std::move(make));
    }
  }
  void add_dataset_function(const std::string& name,
                            std::function<data::Dataset(const InputContext&)> fn) const;
  void add_distributed_function(const std::string& name,
                                std::function<DistributedDataset(const InputContext&)> fn) const;

  std::shared_ptr<internal::ParameterServerCore> core_;
};

}  // namespace cohort::distribute
