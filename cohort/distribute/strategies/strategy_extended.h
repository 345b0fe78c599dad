// For code that must work with any strategy: optimizers, layers, other libraries.
//
//   auto gradient = strategy.run(train_step, batch);  // PerReplica<Tensor>
//   auto sum = strategy.extended().reduce_to(ReduceOp::SUM, gradient, variable);
//   strategy.extended().update(
//       variable, [](Variable& v, const Tensor& g) { v.assign_sub(0.1 * g); }, sum);
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/collective/communication_options.h"
#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/reduce/cross_device_ops.h"
#include "cohort/distribute/step/step_call.h"
#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::internal {

class StrategyCore;

// What the component `index` of a variable gets of an argument of its update.
template <class T>
const T& argument_of_update(const T& value, size_t) {
  return value;
}
template <class T>
const T& argument_of_update(const distribute::Mirrored<T>& value, size_t index) {
  return value.value(std::min(index, value.size() - 1));
}
template <class T>
const T& argument_of_update(const distribute::PerReplica<T>& value, size_t index) {
  return value.value(index);
}
}  // namespace cohort::internal

namespace cohort::distribute {

// While it lives, the calling thread's new variables are kept where another one is.
class COHORT_API [[nodiscard]] ColocationScope {
 public:
  explicit ColocationScope(const Variable& variable);
  ~ColocationScope();
  ColocationScope(const ColocationScope&) = delete;
  ColocationScope& operator=(const ColocationScope&) = delete;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

class InputIterator;
struct InputOptions;
class InputWorkers;
class MultiStepContext;

// Thread safety: as Strategy.
class COHORT_API StrategyExtended {
 public:
  explicit StrategyExtended(std::shared_ptr<internal::StrategyCore> core)
      : core_(std::move(core)) {}

  // Canonical names; under parameter servers the parameters' are those of the ps tasks.
  // Errors: FailedPrecondition (the default strategy has none).
  std::vector<std::string> worker_devices() const;
  std::vector<std::string> parameter_devices() const;

  // The sum or mean over the replicas of all tasks, on every device of `destinations`, which does
  // not change: a device, or those of a value or of a variable. A Mirrored or plain value as in
  // Strategy::reduce. `op` may also be "sum" or "mean", in any case. Cross-replica context;
  // COLLECTIVE over the tasks, which wait as long as `options` say, else those of the strategy.
  // Errors: FailedPrecondition, InvalidArgument (as Strategy::reduce; options that are not
  // possible), DeadlineExceeded (names the tasks that did not come).
  Mirrored<Tensor> reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                             const Destinations& destinations,
                             const experimental::CommunicationOptions& options = {}) const;
  Mirrored<Tensor> reduce_to(ReduceOp op, const Mirrored<Tensor>& value,
                             const Destinations& destinations,
                             const experimental::CommunicationOptions& options = {}) const;
  Mirrored<Tensor> reduce_to(ReduceOp op, const Tensor& value, const Destinations& destinations,
                             const experimental::CommunicationOptions& options = {}) const;
  // The rows of all replicas, in their order; divided by their number for MEAN.
  Mirrored<IndexedSlices> reduce_to(ReduceOp op, const PerReplica<IndexedSlices>& value,
                                    const Destinations& destinations,
                                    const experimental::CommunicationOptions& options = {}) const;
  template <class Value>
  auto reduce_to(std::string_view op, const Value& value, const Destinations& destinations,
                 const experimental::CommunicationOptions& options = {}) const {
    return reduce_to(parse_reduce_op(op), value, destinations, options);
  }
  // reduce_to of each pair.
  using ReplicasPairs = std::vector<std::pair<PerReplica<Tensor>, Destinations>>;
  using PlainPairs = std::vector<std::pair<Tensor, Destinations>>;
  std::vector<Mirrored<Tensor>> batch_reduce_to(
      ReduceOp op, const ReplicasPairs& pairs,
      const experimental::CommunicationOptions& options = {}) const;
  std::vector<Mirrored<Tensor>> batch_reduce_to(
      ReduceOp op, const PlainPairs& pairs,
      const experimental::CommunicationOptions& options = {}) const;
  std::vector<Mirrored<Tensor>> batch_reduce_to(
      std::string_view op, const ReplicasPairs& pairs,
      const experimental::CommunicationOptions& options = {}) const {
    return batch_reduce_to(parse_reduce_op(op), pairs, options);
  }
  std::vector<Mirrored<Tensor>> batch_reduce_to(
      std::string_view op, const PlainPairs& pairs,
      const experimental::CommunicationOptions& options = {}) const {
    return batch_reduce_to(parse_reduce_op(op), pairs, options);
  }

  // `value` on each of the devices, in this process.
  // Errors: InvalidArgument (an undefined tensor).
  Mirrored<Tensor> broadcast_to(const Tensor& value, const Destinations& destinations) const {
    return CrossDeviceOps::broadcast(value, destinations);
  }

  // The value of the variable, for ON_READ the aggregate, which later writes do not change.
  // Errors: FailedPrecondition (in a replica), those of Variable::value.
  Tensor read_var(const Variable& variable) const;

  // Strategy::run.
  template <class Fn, class... Args>
  auto call_for_each_replica(Fn&& fn, Args&&... args) const {
    (void)internal::StepForm<Fn, Args...>();
    internal::check_fault<internal::kStepFault<Fn, Args...>>();
    if constexpr (internal::kStepFault<Fn, Args...> == internal::CallFault::kNone) {
      return internal::run_on_replicas<Fn, Args...>(*core_, RunOptions{}, static_cast<Fn&&>(fn),
                                                    static_cast<Args&&>(args)...);
    }
  }

  // Calls fn(component, arguments...) once for each component of the variable in memory of its own,
  // in cross-replica context where assign and value() act on that component alone. A variable that
  // other processes keep is one component. A Mirrored argument arrives by component, any other
  // whole; a PerReplica by component, if the variable is ON_READ or there is one replica. Returns
  // what the calls have returned, for each component: Mirrored<Result>, whose values() may differ
  // only where those of the components do; void for void.
  // Errors: FailedPrecondition (in a replica: use merge_call), InvalidArgument (another strategy's
  // variable; a PerReplica argument of an ON_WRITE variable, or with another number of components),
  // what fn throws.
  template <class Fn, class... Args>
  auto update(const Variable& variable, Fn&& fn, const Args&... args) const {
    const std::vector<size_t> owners = begin_update(variable);
    (check_argument(variable, owners.size(), args), ...);
    Variable handle = variable;
    const auto call = [&]([[maybe_unused]] size_t i) -> decltype(auto) {
      return fn(handle, internal::argument_of_update(args, i)...);
    };
    return for_each(owners, call);
  }

  // The devices on which values lie that belong to none of the variables but are updated with them.
  // Errors: InvalidArgument (no variables).
  Destinations non_slot_devices(const std::vector<Variable>& variables) const;
  // Calls fn(arguments...) once for each of the devices, as update does for each component.
  // Errors: FailedPrecondition (in a replica: use merge_call), OutOfRange (a PerReplica argument
  // with fewer components), what fn throws.
  template <class Fn, class... Args>
  auto update_non_slot(const Destinations& devices, Fn&& fn, const Args&... args) const {
    const auto call = [&]([[maybe_unused]] size_t i) -> decltype(auto) {
      return fn(internal::argument_of_update(args, i)...);
    };
    return for_each(begin_update_of(devices), call);
  }

  bool variable_created_in_scope(const Variable& variable) const;

  // While the result lives, new variables of this thread are kept where `variable` is: on the ps
  // task that keeps it (its first shard), undivided. Strategies without ps tasks keep all variables
  // on the same devices anyway.
  // Errors: InvalidArgument (a variable of another strategy: names it).
  ColocationScope colocate_vars_with(const Variable& variable) const;

  // Whether this task is the one whose checkpoints and summaries count: the first of the sync
  // group. Checkpoint::save and the summaries of a step need no such question: they go by it
  // themselves.
  bool should_checkpoint() const;
  bool should_save_summary() const;
  // Whether several tasks run the same program side by side.
  bool experimental_between_graph() const;
  // Whether all steps must see the same shapes. Never.
  bool experimental_require_static_shapes() const { return false; }

  // The devices that read this process's input, and for which replicas.
  InputWorkers input_workers() const;
  InputWorkers input_workers(const InputOptions& options) const;

  // Calls fn(context, batch) for `iterations` batches, in cross-replica context: see legacy.h. The
  // context's last outputs are initial_loop_values until a step sets others.
  // Errors: OutOfRange (the input ends before), what fn throws.
  MultiStepContext experimental_run_steps_on_iterator(
      const std::function<void(MultiStepContext&, const PerReplica<Structure>&)>& fn,
      InputIterator& input, int iterations = 1,
      const std::map<std::string, PerReplica<Tensor>>& initial_loop_values = {}) const;

 private:
  // For each component that a program sees, the first one with which it shares memory.
  // Errors: FailedPrecondition, InvalidArgument (as update).
  std::vector<size_t> begin_update(const Variable& variable) const;
  std::vector<size_t> begin_update_of(const Destinations& devices) const;
  void update_component(size_t component, FunctionRef<void()> call) const;
  void check_created_here(const char* what, const Variable& variable) const;
  void check_per_replica(const Variable& variable, size_t components, size_t given) const;

  template <class T>
  void check_argument(const Variable&, size_t, const T&) const {}
  template <class T>
  void check_argument(const Variable& variable, size_t components,
                      const PerReplica<T>& argument) const {
    check_per_replica(variable, components, argument.size());
  }

  // Calls call(i) where i is a component with memory of its own, as an update of it.
  template <class Call>
  auto for_each(const std::vector<size_t>& owners, const Call& call) const {
    using Result = std::remove_cvref_t<std::invoke_result_t<const Call&, size_t>>;
    if constexpr (std::is_void_v<Result>) {
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] == i) update_component(i, [&] { call(i); });
      }
    } else {
      typename Mirrored<Result>::Values results;
      for (size_t i = 0; i < owners.size(); ++i) {
        if (owners[i] == i) {
          update_component(i, [&] { results.push_back(call(i)); });
        } else {
          results.push_back(results[owners[i]]);
        }
      }
      return Mirrored<Result>(std::move(results));
    }
  }

  internal::Handle<internal::StrategyCore, "StrategyExtended"> core_;
};

}  // namespace cohort::distribute
