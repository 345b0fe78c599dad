#include "cohort/distribute/strategies/legacy.h"

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distribute_dataset.h"

namespace cohort::distribute {

using internal::str;

// The counters of distributed datasets do not count these iterators, as in the original.
InputIterator Strategy::make_dataset_iterator(const data::Dataset& dataset) const {
  return InputIterator(internal::distribute_to_workers(core(), dataset, core_->input_workers({})));
}
InputIterator Strategy::make_input_fn_iterator(const DatasetFunction& fn) const {
  return make_input_fn_iterator(fn, InputReplicationMode::PER_WORKER);
}
InputIterator Strategy::make_input_fn_iterator(const DatasetFunction& fn,
                                               InputReplicationMode mode) const {
  if (mode != InputReplicationMode::PER_WORKER) {
    throw InvalidArgumentError(
        "make_input_fn_iterator: input replication mode not supported: PER_REPLICA; use "
        "distribute_datasets_from_function");
  }
  return InputIterator(internal::datasets_from_function(core(), fn, {}));
}
data::Dataset Strategy::experimental_make_numpy_dataset(const Structure& arrays) const {
  return data::Dataset::from_tensor_slices(arrays);
}
PerReplica<Structure> Strategy::next_input(InputIterator& input) { return input.get_next(); }

MultiStepContext StrategyExtended::experimental_run_steps_on_iterator(
    const std::function<void(MultiStepContext&, const PerReplica<Structure>&)>& fn,
    InputIterator& input, int iterations,
    const std::map<std::string, PerReplica<Tensor>>& initial_loop_values) const {
  if (iterations < 1) {
    throw InvalidArgumentError(str("experimental_run_steps_on_iterator: iterations is ", iterations,
                                   "; it must be at least 1"));
  }
  const Scope scope(core_);
  MultiStepContext context;
  context.outputs_ = initial_loop_values;
  for (int i = 0; i < iterations; ++i) fn(context, input.get_next());
  return context;
}

void MultiStepContext::set_last_step_output(const std::string& name,
                                            const PerReplica<Tensor>& output,
                                            std::optional<ReduceOp> reduce_op) {
  if (reduce_op) {
    outputs_[name] = PerReplica<Tensor>({get_strategy().reduce(*reduce_op, output)});
  } else {
    outputs_[name] = output;
  }
}
void MultiStepContext::set_last_step_output(ReplicaContext& replica, const std::string& name,
                                            const Tensor& output,
                                            std::optional<ReduceOp> reduce_op) {
  replica.merge_call(
      [&](Strategy&, const PerReplica<Tensor>& outputs) {
        PerReplica<Tensor>::Values detached;
        for (const Tensor& value : outputs.values()) detached.push_back(value.detach());
        set_last_step_output(name, PerReplica<Tensor>(std::move(detached)), reduce_op);
      },
      output);
}

void MultiStepContext::set_non_tensor_output(const std::string& name, std::any output) {
  non_tensor_outputs_[name] = std::move(output);
}
void MultiStepContext::set_non_tensor_output(ReplicaContext& replica, const std::string& name,
                                             std::any output) {
  replica.merge_call(
      [&](Strategy&, const PerReplica<std::any>& outputs) {
        set_non_tensor_output(
            name, std::vector<std::any>(outputs.values().begin(), outputs.values().end()));
      },
      output);
}

StandardInputStep::StandardInputStep(std::function<data::Dataset()> dataset_fn,
                                     const Strategy& strategy)
    : strategy_(&strategy),
      input_(strategy.make_input_fn_iterator(
          [fn = std::move(dataset_fn)](const InputContext&) { return fn(); })) {}

}  // namespace cohort::distribute
