#include "cohort/distribute/strategies/strategy.h"

#include <ATen/ops/narrow.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "cohort/collective/replica_collectives.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/observe/time_histogram.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/reduce/gather_strings.h"
#include "cohort/distribute/reduce/structure_form.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy_object.h"
#include "cohort/distribute/values/ragged_values.h"
#include "cohort/distribute/values/reduction.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::distribute {

using internal::describe;
using internal::require_cross_replica;
using internal::str;

std::ostream& operator<<(std::ostream& out, const ValueContext& context) {
  return out << "tf.distribute.ValueContext(replica id " << context.replica_id_in_sync_group
             << ",  total replicas in sync: " << context.num_replicas_in_sync << ")";
}

int Strategy::num_replicas_in_sync() const { return core_->num_replicas_in_sync(); }
NamedFunctions& Strategy::named_functions() const { return core()->named_functions(); }

size_t Strategy::num_local_replicas() const {
  return static_cast<size_t>(core_->num_local_replicas());
}
std::shared_ptr<const cluster_resolver::ClusterResolver> Strategy::cluster_resolver() const {
  return core_->cluster_resolver();
}
StrategyExtended Strategy::extended() const { return StrategyExtended(core_); }
Scope Strategy::scope() const { return Scope(core_); }

std::shared_ptr<train::Trackable> Strategy::trackable() const {
  return internal::make_strategy_object(core_);
}

ValueContext Strategy::value_context(size_t local_replica) const {
  return {core_->replica_id(static_cast<int>(local_replica)), core_->num_replicas_in_sync()};
}

void Strategy::run_frame(const std::shared_ptr<internal::RunFrame>& frame,
                         const RunOptions& options) const {
  core_->run(frame, options);
}

namespace {

template <class T>
void check_is_of_all(const char* what, const PerReplica<T>& value, size_t replicas) {
  if (value.size() == replicas) return;
  internal::throw_wrong_component_count(what, value.size(), replicas);
}

int64_t wrapped_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    throw InvalidArgumentError(str("reduce along axis ", axis, " of values of rank ", rank,
                                   "; the axis must be in [", -rank, ", ", rank, ")"));
  }
  return axis < 0 ? axis + rank : axis;
}

// Errors: Unimplemented (sparse values, whose rows a sum along an axis does not keep).
void check_can_sum_along(const ReduceAxis& axis, const Tensor& value) {
  if (!axis.given() || value.layout() == at::kStrided) return;
  throw UnimplementedError(str("reduce along an axis of a sparse tensor (", describe(value),
                               ") is not supported; make it dense with to_dense(), or reduce it ",
                               "without an axis"));
}

// Each component summed over the axes, and how many elements were summed into each result.
std::pair<std::vector<Tensor>, int64_t> sum_inside(const PerReplica<Tensor>& value,
                                                   const std::vector<int64_t>& axes) {
  std::vector<Tensor> sums;
  int64_t count = 0;
  for (const Tensor& component : value.values()) {
    std::vector<int64_t> dims;
    int64_t product = 1;
    for (const int64_t axis : axes) {
      dims.push_back(wrapped_axis(axis, component.dim()));
      product *= component.size(dims.back());
    }
    sums.push_back(dims.empty() ? component : component.sum(dims));
    count += product;
  }
  return {std::move(sums), count};
}

// Tasks that reduce by different operations, or along different axes of `value`, make different calls.
std::string call_name(ReduceOp op, const ReduceAxis& axis, const Tensor& value) {
  std::string name = op == ReduceOp::SUM ? "reduce SUM" : "reduce MEAN";
  std::vector<int64_t> axes;
  for (const int64_t one : axis.axes()) axes.push_back(wrapped_axis(one, value.dim()));
  std::sort(axes.begin(), axes.end());
  for (const int64_t one : axes) name += str(" along axis ", one);
  return name;
}

// Combines one value of each task.
Tensor combine_of_tasks(collective::SyncGroup& group, ReduceOp op, const Tensor& value,
                        const ReduceAxis& axis) {
  internal::check_can_reduce(op, value);
  check_can_sum_along(axis, value);
  if (value.layout() != at::kStrided) {
    throw UnimplementedError(str("reduce of a sparse tensor of each task (", describe(value),
                                 ") is not supported; reduce what run returned, or make it dense"));
  }
  const std::string name = call_name(op, axis, value);
  const auto [own, own_count] = sum_inside(PerReplica<Tensor>({value}), axis.axes());
  const Tensor sum = internal::wide_sum(own, [&](at::ArrayRef<Tensor> values) {
    Tensor total = values[0].to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    collective::sum_over_tasks(group, total, name);
    return total;
  });
  if (op == ReduceOp::SUM) return internal::sum_that_fits(sum, value, "reduce");
  const int64_t mine = axis.given() ? own_count : 1;
  const auto counts = collective::all_tasks_values(group, mine, "number of elements");
  return internal::mean_of(sum, std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                           value.scalar_type());
}

}  // namespace

Tensor Strategy::reduce(ReduceOp op, const PerReplica<Tensor>& value,
                        const ReduceAxis& axis) const {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  return core_->group().attempt("reduce", [&] {
    check_is_of_all("the value given to reduce", value, num_local_replicas());
    return internal::with_typed_errors("Strategy::reduce",
                                       [&] { return combine(op, value, axis); });
  });
}

Tensor Strategy::combine(ReduceOp op, const PerReplica<Tensor>& value,
                         const ReduceAxis& axis) const {
  const at::ArrayRef<Tensor> components(value.values().data(), value.values().size());
  const DType dtype = components[0].scalar_type();
  internal::check_can_reduce(op, components[0]);
  for (const Tensor& component : value.values()) check_can_sum_along(axis, component);
  const auto sum_of = [&](at::ArrayRef<Tensor> values) {
    return core_->sum_over_replicas(values, call_name(op, axis, components[0]));
  };
  if (!axis.given()) {
    collective::check_same_shape(components, core_->replica_id(0));
    const Tensor sum = internal::wide_sum(components, sum_of);
    if (op == ReduceOp::SUM) return internal::sum_that_fits(sum, components[0], "reduce");
    return internal::mean_of(sum, core_->num_replicas_in_sync(), dtype);
  }
  const auto [sums, count] = sum_inside(value, axis.axes());
  collective::check_same_shape(sums, core_->replica_id(0));
  const Tensor sum = internal::wide_sum(sums, sum_of);
  if (op == ReduceOp::SUM) return internal::sum_that_fits(sum, components[0], "reduce");
  int64_t total = count;
  if (core_->num_replicas_in_sync() != core_->num_local_replicas()) {
    const std::vector<Tensor> counts(
        value.size(),
        at::scalar_tensor(static_cast<double>(count) / static_cast<double>(value.size()),
                          at::dtype(at::kDouble)));
    total = core_->sum_over_replicas(counts).round().item<int64_t>();
  }
  return internal::mean_of(sum, total, dtype);
}

Tensor Strategy::reduce(ReduceOp op, const Mirrored<Tensor>& value, const ReduceAxis& axis) const {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  internal::check_reduce_op(op);
  if (op == ReduceOp::MEAN && !axis.given()) return value.item();
  return reduce(op, PerReplica<Tensor>({value.values().begin(), value.values().end()}), axis);
}

Tensor Strategy::reduce(ReduceOp op, const Tensor& value, const ReduceAxis& axis) const {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  if (core_->group().spans_tasks()) {
    return core_->group().attempt("reduce", [&] {
      internal::check_reduce_op(op);
      return internal::with_typed_errors(
          "Strategy::reduce", [&] { return combine_of_tasks(core_->group(), op, value, axis); });
    });
  }
  internal::check_reduce_op(op);
  if (op == ReduceOp::MEAN && !axis.given()) return value;
  if (num_replicas_in_sync() == 1) return reduce(op, PerReplica<Tensor>({value}), axis);
  if (op == ReduceOp::MEAN) {
    internal::check_can_reduce(op, value);
    check_can_sum_along(axis, value);
    const auto [sums, count] = sum_inside(PerReplica<Tensor>({value}), axis.axes());
    return internal::mean_of(sums[0], count, value.scalar_type());
  }
  throw InvalidArgumentError(str(
      "a plain value (", describe(value), ") cannot be reduced with the given reduce op SUM over ",
      num_replicas_in_sync(), " replicas; reduce what run returned, or multiply it yourself"));
}

Structure Strategy::reduce(ReduceOp op, const PerReplica<Structure>& value,
                           const ReduceAxis& axis) const {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  core_->group().attempt("reduce", [&] {
    internal::check_reduce_op(op);
    check_is_of_all("the value given to reduce", value, num_local_replicas());
    for (const Structure& component : value.values()) {
      internal::check_can_reduce_rows("reduce", component);
    }
    internal::agree_on_form(core_->group(), value.value(0), "reduce");
  });
  return map_structures(std::vector<Structure>(value.values().begin(), value.values().end()),
                        [&](const std::vector<Leaf>& leaves) -> Leaf {
                          PerReplica<Tensor>::Values tensors;
                          for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
                          return reduce(op, PerReplica<Tensor>(std::move(tensors)), axis);
                        });
}

Tensor Strategy::gather(const PerReplica<Tensor>& value, int64_t axis) const {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  return core_->group().attempt("gather", [&] {
    check_is_of_all("the value given to gather", value, num_local_replicas());
    for (const Tensor& component : value.values()) collective::check_can_gather(component);
    const at::ArrayRef<Tensor> components(value.values().data(), value.values().size());
    return internal::with_typed_errors(
        "Strategy::gather", [&] { return core_->gather_over_replicas(components, axis); });
  });
}

Tensor Strategy::gather(const Tensor& value, int64_t axis) const {
  return core_->group().attempt("gather", [&] {
    collective::check_can_gather(value);
    // The first replica of the task brings it, the others no rows.
    PerReplica<Tensor>::Values components(num_local_replicas(), value);
    if (axis >= 0 && axis < value.dim()) {
      std::fill(components.begin() + 1, components.end(), value.narrow(axis, 0, 0));
    }
    return gather(PerReplica<Tensor>(std::move(components)), axis);
  });
}

Structure Strategy::gather(const PerReplica<Structure>& value, int64_t axis) const {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  std::vector<Structure> components;
  core_->group().attempt("gather", [&] {
    check_is_of_all("the value given to gather", value, num_local_replicas());
    for (const Structure& component : value.values()) {
      components.push_back(internal::with_row_lengths("gather", component, axis));
    }
    internal::agree_on_form(core_->group(), components[0], "gather");
  });
  return internal::with_row_splits(
      map_structures(components, [&](const std::vector<Leaf>& leaves) -> Leaf {
        if (leaves[0].is_strings()) {
          PerReplica<StringTensor>::Values strings;
          for (const Leaf& leaf : leaves) strings.push_back(leaf.strings());
          return gather(PerReplica<StringTensor>(std::move(strings)), axis);
        }
        PerReplica<Tensor>::Values tensors;
        for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
        return gather(PerReplica<Tensor>(std::move(tensors)), axis);
      }));
}

StringTensor Strategy::gather(const PerReplica<StringTensor>& value, int64_t axis) const {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  return core_->group().attempt("gather", [&] {
    check_is_of_all("the value given to gather", value, num_local_replicas());
    return internal::with_typed_errors("Strategy::gather", [&] {
      return internal::gather_strings(*core_, {value.values().begin(), value.values().end()}, axis);
    });
  });
}

namespace {

void count_call(const internal::StrategyCore& core, const char* function) {
  internal::increase_counter("distribution_strategy_input_api_counter",
                             {std::string(core.name()), function});
}

internal::TimedScope timed_creation() {
  static internal::TimeHistogram& times = internal::time_histogram("dataset_creation");
  return internal::TimedScope(times);
}

}  // namespace

DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset) const {
  return experimental_distribute_dataset(dataset, InputOptions{});
}
DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset,
                                                             const InputOptions& options) const {
  count_call(*core_, "distribute_dataset");
  const auto timed = timed_creation();
  return get_distributed_dataset(dataset, core_->input_workers(options), *this, {.input = options});
}

DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& fn) const {
  return distribute_datasets_from_function(fn, InputOptions{});
}
DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& fn,
                                                               const InputOptions& options) const {
  count_call(*core_, "distribute_datasets_from_function");
  const auto timed = timed_creation();
  return datasets_from_function(fn, options);
}
DistributedDataset Strategy::datasets_from_function(const DatasetFunction& fn,
                                                    const InputOptions& options) const {
  const InputWorkers workers = core_->input_workers(options);
  const internal::StrategyCore::InputPipelines pipelines =
      core_->input_pipelines(workers.num_workers());
  std::vector<InputContext> contexts;
  for (int i = 0; i < workers.num_workers(); ++i) {
    contexts.push_back({.num_input_pipelines = pipelines.total,
                        .input_pipeline_id = pipelines.first + i,
                        .num_replicas_in_sync = num_replicas_in_sync()});
  }
  return get_distributed_datasets_from_function(fn, workers, contexts, *this, options);
}
DistributedDataset Strategy::experimental_distribute_datasets_from_function(
    const DatasetFunction& fn) const {
  return distribute_datasets_from_function(fn);
}
DistributedDataset Strategy::experimental_distribute_datasets_from_function(
    const DatasetFunction& fn, const InputOptions& options) const {
  return distribute_datasets_from_function(fn, options);
}

}  // namespace cohort::distribute
