#include "cohort/distribute/reduce/reduce_replicas.h"

#include <ATen/ops/narrow.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/replica_collectives.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/reduce/gather_strings.h"
#include "cohort/distribute/reduce/structure_form.h"
#include "cohort/distribute/values/component.h"
#include "cohort/distribute/values/ragged_values.h"
#include "cohort/distribute/values/reduction.h"

namespace cohort::internal {

using distribute::Mirrored;
using distribute::PerReplica;
using distribute::ReduceAxis;
using distribute::ReduceOp;

namespace {

template <class T>
void check_is_of_all(const StrategyCore& core, const char* what, const PerReplica<T>& value) {
  const auto replicas = static_cast<size_t>(core.num_local_replicas());
  if (value.size() == replicas || core.are_of_all_replicas(value.size())) return;
  throw_wrong_component_count(what, value.size(), replicas);
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

// Tasks that reduce by different operations, or along different axes of `value`, make different
// calls.
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
  check_can_reduce(op, value);
  check_can_sum_along(axis, value);
  if (value.layout() != at::kStrided) {
    throw UnimplementedError(str("reduce of a sparse tensor of each task (", describe(value),
                                 ") is not supported; reduce what run returned, or make it dense"));
  }
  const std::string name = call_name(op, axis, value);
  const auto [own, own_count] = sum_inside(PerReplica<Tensor>({value}), axis.axes());
  const Tensor sum = wide_sum(own, [&](at::ArrayRef<Tensor> values) {
    Tensor total = values[0].to(at::kCPU).clone(at::MemoryFormat::Contiguous);
    collective::sum_over_tasks(group, total, name);
    return total;
  });
  if (op == ReduceOp::SUM) return sum_that_fits(sum, value, "reduce");
  const int64_t mine = axis.given() ? own_count : 1;
  const auto counts = collective::all_tasks_values(group, mine, "number of elements");
  return mean_of(sum, std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                 value.scalar_type());
}

// Combines checked values.
Tensor combine(StrategyCore& core, ReduceOp op, const PerReplica<Tensor>& value,
               const ReduceAxis& axis) {
  const at::ArrayRef<Tensor> components(value.values().data(), value.values().size());
  const DType dtype = components[0].scalar_type();
  check_can_reduce(op, components[0]);
  for (const Tensor& component : value.values()) check_can_sum_along(axis, component);
  const bool all_are_here = core.are_of_all_replicas(value.size());
  const int first = all_are_here ? 0 : core.replica_id(0);
  const auto sum_of = [&](at::ArrayRef<Tensor> values) {
    return core.sum_over_replicas(values, call_name(op, axis, components[0]));
  };
  if (!axis.given()) {
    collective::check_same_shape(components, first);
    const Tensor sum = wide_sum(components, sum_of);
    if (op == ReduceOp::SUM) return sum_that_fits(sum, components[0], "reduce");
    return mean_of(sum, core.num_replicas_in_sync(), dtype);
  }
  const auto [sums, count] = sum_inside(value, axis.axes());
  collective::check_same_shape(sums, first);
  const Tensor sum = wide_sum(sums, sum_of);
  if (op == ReduceOp::SUM) return sum_that_fits(sum, components[0], "reduce");
  int64_t total = count;
  if (!all_are_here && core.num_replicas_in_sync() != core.num_local_replicas()) {
    const std::vector<Tensor> counts(
        value.size(),
        at::scalar_tensor(static_cast<double>(count) / static_cast<double>(value.size()),
                          at::dtype(at::kDouble)));
    total = core.sum_over_replicas(counts).round().item<int64_t>();
  }
  return mean_of(sum, total, dtype);
}

PerReplica<Tensor> of_all_replicas(const StrategyCore& core, const PerReplica<Tensor>& value) {
  const std::shared_ptr<const ReplicaSource>& source = value.source();
  if (core.transaction() == nullptr || source == nullptr || !source->has_all()) return value;
  PerReplica<Tensor>::Values all;
  for (int id = 0; id < core.num_replicas_in_sync(); ++id) {
    all.push_back(source->component(id).tensor());
  }
  return PerReplica<Tensor>(std::move(all));
}

}  // namespace

PerReplica<Structure> of_all_replicas(const StrategyCore& core,
                                      const PerReplica<Structure>& value) {
  const std::shared_ptr<const ReplicaSource>& source = value.source();
  if (core.transaction() == nullptr || source == nullptr || !source->has_all()) return value;
  PerReplica<Structure>::Values all;
  for (int id = 0; id < core.num_replicas_in_sync(); ++id) all.push_back(source->component(id));
  return PerReplica<Structure>(std::move(all));
}

Tensor reduce_replicas(StrategyCore& core, ReduceOp op, const PerReplica<Tensor>& own,
                       const ReduceAxis& axis) {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  const PerReplica<Tensor> value = of_all_replicas(core, own);
  return core.group().attempt("reduce", [&] {
    check_is_of_all(core, "the value given to reduce", value);
    return with_typed_errors("Strategy::reduce", [&] { return combine(core, op, value, axis); });
  });
}

Tensor reduce_replicas(StrategyCore& core, ReduceOp op, const Mirrored<Tensor>& value,
                       const ReduceAxis& axis) {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  check_reduce_op(op);
  if (op == ReduceOp::MEAN && !axis.given()) return value.item();
  return reduce_replicas(core, op,
                         PerReplica<Tensor>({value.values().begin(), value.values().end()}), axis);
}

Tensor reduce_replicas(StrategyCore& core, ReduceOp op, const Tensor& value,
                       const ReduceAxis& axis) {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  // A sum of one value a task would depend on the number of tasks.
  if (core.group().spans_tasks() && core.group().view()->division == nullptr) {
    return core.group().attempt("reduce", [&] {
      check_reduce_op(op);
      return with_typed_errors("Strategy::reduce",
                               [&] { return combine_of_tasks(core.group(), op, value, axis); });
    });
  }
  check_reduce_op(op);
  if (op == ReduceOp::MEAN && !axis.given()) return value;
  if (core.num_replicas_in_sync() == 1)
    return reduce_replicas(core, op, PerReplica<Tensor>({value}), axis);
  if (op == ReduceOp::MEAN) {
    check_can_reduce(op, value);
    check_can_sum_along(axis, value);
    const auto [sums, count] = sum_inside(PerReplica<Tensor>({value}), axis.axes());
    return mean_of(sums[0], count, value.scalar_type());
  }
  throw InvalidArgumentError(str(
      "a plain value (", describe(value), ") cannot be reduced with the given reduce op SUM over ",
      core.num_replicas_in_sync(), " replicas; reduce what run returned, or multiply it yourself"));
}

Structure reduce_replicas(StrategyCore& core, ReduceOp op, const PerReplica<Structure>& own,
                          const ReduceAxis& axis) {
  require_cross_replica("reduce", "ReplicaContext::all_reduce");
  const PerReplica<Structure> value = of_all_replicas(core, own);
  core.group().attempt("reduce", [&] {
    check_reduce_op(op);
    check_is_of_all(core, "the value given to reduce", value);
    for (const Structure& component : value.values()) {
      check_can_reduce_rows("reduce", component);
    }
    if (!core.are_of_all_replicas(value.size()))
      agree_on_form(core.group(), value.value(0), "reduce");
  });
  return map_structures(std::vector<Structure>(value.values().begin(), value.values().end()),
                        [&](const std::vector<Leaf>& leaves) -> Leaf {
                          PerReplica<Tensor>::Values tensors;
                          for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
                          return reduce_replicas(core, op, PerReplica<Tensor>(std::move(tensors)),
                                                 axis);
                        });
}

Tensor gather_replicas(StrategyCore& core, const PerReplica<Tensor>& own, int64_t axis) {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  const PerReplica<Tensor> value = of_all_replicas(core, own);
  return core.group().attempt("gather", [&] {
    check_is_of_all(core, "the value given to gather", value);
    for (const Tensor& component : value.values()) collective::check_can_gather(component);
    const at::ArrayRef<Tensor> components(value.values().data(), value.values().size());
    return with_typed_errors("Strategy::gather",
                             [&] { return core.gather_over_replicas(components, axis); });
  });
}

Tensor gather_replicas(StrategyCore& core, const Tensor& value, int64_t axis) {
  return core.group().attempt("gather", [&] {
    collective::check_can_gather(value);
    // There is no value of each task, where results must not depend on them.
    if (core.group().view()->division != nullptr) {
      collective::check_can_concat({value}, axis);
      return value;
    }
    // The first replica of the task brings it, the others no rows.
    PerReplica<Tensor>::Values components(static_cast<size_t>(core.num_local_replicas()), value);
    if (axis >= 0 && axis < value.dim()) {
      std::fill(components.begin() + 1, components.end(), value.narrow(axis, 0, 0));
    }
    return gather_replicas(core, PerReplica<Tensor>(std::move(components)), axis);
  });
}

Structure gather_replicas(StrategyCore& core, const PerReplica<Structure>& own, int64_t axis) {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  const PerReplica<Structure> value = of_all_replicas(core, own);
  std::vector<Structure> components;
  core.group().attempt("gather", [&] {
    check_is_of_all(core, "the value given to gather", value);
    for (const Structure& component : value.values()) {
      components.push_back(with_row_lengths("gather", component, axis));
    }
    if (!core.are_of_all_replicas(value.size()))
      agree_on_form(core.group(), components[0], "gather");
  });
  return with_row_splits(map_structures(components, [&](const std::vector<Leaf>& leaves) -> Leaf {
    if (leaves[0].is_strings()) {
      PerReplica<StringTensor>::Values strings;
      for (const Leaf& leaf : leaves) strings.push_back(leaf.strings());
      return gather_replicas(core, PerReplica<StringTensor>(std::move(strings)), axis);
    }
    PerReplica<Tensor>::Values tensors;
    for (const Leaf& leaf : leaves) tensors.push_back(leaf.tensor());
    return gather_replicas(core, PerReplica<Tensor>(std::move(tensors)), axis);
  }));
}

StringTensor gather_replicas(StrategyCore& core, const PerReplica<StringTensor>& value,
                             int64_t axis) {
  require_cross_replica("gather", "ReplicaContext::all_gather");
  return core.group().attempt("gather", [&] {
    check_is_of_all(core, "the value given to gather", value);
    return with_typed_errors("Strategy::gather", [&] {
      return gather_strings(core, {value.values().begin(), value.values().end()}, axis);
    });
  });
}

}  // namespace cohort::internal
