#include "cohort/distribute/variables/write_together.h"

#include <c10/core/ScalarType.h>

#include <string_view>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/values/reduction.h"

namespace cohort::internal {

using distribute::VariableAggregation;

namespace {

// What a replica brings.
template <class Value>
struct Frame {
  const WriteTarget& target;
  const char* operation;
  const Value& value;
};

template <class Value>
std::vector<const Value*> values_of(const StrategyCore& core, std::span<void* const> all,
                                    const Frame<Value>& mine) {
  std::vector<const Value*> values;
  for (void* one : all) {
    const auto& other = *static_cast<const Frame<Value>*>(one);
    if (&other.target.variable != &mine.target.variable || other.target.name != mine.target.name ||
        std::string_view(other.operation) != mine.operation) {
      throw FailedPreconditionError(str(
          "replica ", core.replica_id(static_cast<int>(values.size())), " calls ", other.operation,
          " of variable '", other.target.name, "' while another calls ", mine.operation, " of '",
          mine.target.name, "'; every replica must make the same calls in one order"));
    }
    values.push_back(&other.value);
  }
  return values;
}

void check_has_aggregate(const WriteTarget& target, const char* operation) {
  const VariableImpl& variable = target.variable;
  if (variable.options().aggregation == VariableAggregation::NONE) {
    throw InvalidArgumentError(str("You must specify an aggregation method to update a ",
                                   variable.kind(), " in Replica Context: make variable '",
                                   variable.name(), "' with .aggregation, or call ", operation,
                                   " in merge_call"));
  }
  check_can_aggregate(variable);
  if (variable.options().aggregation == VariableAggregation::MEAN &&
      !at::isFloatingType(variable.dtype()) && !at::isComplexType(variable.dtype())) {
    throw InvalidArgumentError(str("variable '", variable.name(), "' of dtype ",
                                   dtype_name(variable.dtype()),
                                   " has no MEAN over replicas; use SUM or ONLY_FIRST_REPLICA"));
  }
}

Tensor aggregate(const WriteTarget& target, at::ArrayRef<Tensor> values) {
  const StrategyCore& core = *target.variable.core();
  const VariableAggregation aggregation = target.variable.options().aggregation;
  if (aggregation == VariableAggregation::ONLY_FIRST_REPLICA) {
    return core.value_of_first_replica(values, target.call);
  }
  const Tensor sum = wide_sum(
      values, [&](at::ArrayRef<Tensor> wide) { return core.sum_over_replicas(wide, target.call); });
  if (aggregation == VariableAggregation::MEAN) return sum / core.num_replicas_in_sync();
  return sum_that_fits(sum, values[0], str("variable '", target.name, "':").c_str());
}

// Rows of one replica alone make no aggregate, and a minimum of sums is no sum of minima.
bool takes_one_replicas_rows(ScatterOp op) {
  return op == ScatterOp::kMin || op == ScatterOp::kMax || op == ScatterOp::kUpdate;
}

void check_computes(const VariableImpl& variable, const char* operation, const char* instead) {
  if (variable.dtype() != DType::Bool) return;
  throw InvalidArgumentError(str(operation, " of variable '", variable.name(),
                                 "', which is bool and takes no arithmetic; compute the value and ",
                                 "call ", instead,
                                 ", or make the variable with a dtype of numbers"));
}

}  // namespace

void check_computes(const VariableImpl& variable, AssignOp op) {
  if (op != AssignOp::kAssign) check_computes(variable, assign_name(op), "assign");
}

void check_computes(const VariableImpl& variable, ScatterOp op) {
  if (op != ScatterOp::kUpdate) check_computes(variable, scatter_name(op), "scatter_update");
}

void check_can_aggregate(const VariableImpl& variable) {
  const VariableAggregation aggregation = variable.options().aggregation;
  const bool adds_up =
      aggregation == VariableAggregation::SUM || aggregation == VariableAggregation::MEAN;
  if (!adds_up || variable.dtype() != DType::Bool) return;
  throw InvalidArgumentError(
      str("variable '", variable.name(), "' is bool and has no ",
          aggregation == VariableAggregation::SUM ? "SUM" : "MEAN",
          " over replicas; use ONLY_FIRST_REPLICA, or a variable with a dtype of numbers"));
}

void assign_together(Replica& replica, const WriteTarget& target, AssignOp op, const Tensor& value,
                     FunctionRef<void(const Tensor&)> write) {
  check_has_aggregate(target, assign_name(op));
  Frame<Tensor> mine{target, assign_name(op), value};
  replica.merge("assign", &mine, [&](std::span<void* const> all) {
    std::vector<Tensor> values;
    for (const Tensor* one : values_of(*target.variable.core(), all, mine)) values.push_back(*one);
    write(aggregate(target, values));
  });
}

void scatter_together(Replica& replica, const WriteTarget& target, ScatterOp op,
                      const IndexedSlices& slices, FunctionRef<void(const IndexedSlices&)> write) {
  const VariableAggregation aggregation = target.variable.options().aggregation;
  const bool only_first = aggregation == VariableAggregation::ONLY_FIRST_REPLICA;
  if (takes_one_replicas_rows(op) && !only_first && aggregation != VariableAggregation::NONE) {
    throw UnimplementedError(
        str(scatter_name(op),
            " in a replica is only supported for variables with aggregation "
            "ONLY_FIRST_REPLICA; variable '",
            target.name,
            "' has SUM or MEAN: call it in merge_call, or make the variable with another"));
  }
  check_has_aggregate(target, scatter_name(op));
  Frame<IndexedSlices> mine{target, scatter_name(op), slices};
  replica.merge("scatter", &mine, [&](std::span<void* const> all) {
    const StrategyCore& core = *target.variable.core();
    std::vector<Tensor> values;
    std::vector<Tensor> indices;
    for (const IndexedSlices* one : values_of(core, all, mine)) {
      const bool counts = !only_first || core.replica_id(static_cast<int>(values.size())) == 0;
      const int64_t rows = counts ? one->indices.numel() : 0;
      values.push_back(one->values.narrow(0, 0, rows));
      indices.push_back(one->indices.narrow(0, 0, rows));
    }
    IndexedSlices together = {core.gather_over_replicas(values, 0, target.call),
                              core.gather_over_replicas(indices, 0, target.call)};
    if (aggregation == VariableAggregation::MEAN) {
      together.values = together.values / core.num_replicas_in_sync();
    }
    write(together);
  });
}

}  // namespace cohort::internal
