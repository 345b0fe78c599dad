#include "cohort/distribute/on_write_variable.h"

#include <algorithm>

#include "cohort/core/tracing.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/reduction.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

using distribute::ReplicaContext;
using distribute::Strategy;
using distribute::VariableAggregation;

namespace {

// A replica writes to another variable, or in another way, than the last one to arrive.
[[noreturn]] void throw_other_call(const StrategyCore& core, size_t replica, const char* its_call,
                                   const VariableImpl& its_variable, const char* call,
                                   const VariableImpl& variable) {
  throw FailedPreconditionError(str("replica ", core.replica_id(static_cast<int>(replica)),
                                    " calls ", its_call, " of variable '", its_variable.name(),
                                    "' while another calls ", call, " of '", variable.name(),
                                    "'; every replica must make the same calls in one order"));
}

// Rows of one replica alone make no aggregate, and a minimum of sums is no sum of minima.
bool takes_one_replicas_rows(ScatterOp op) {
  return op == ScatterOp::kMin || op == ScatterOp::kMax || op == ScatterOp::kUpdate;
}

}  // namespace

Tensor OnWriteVariable::read() const {
  const ReplicaContext* replica = owners_replica("read");
  if (replica != nullptr) return leaf(static_cast<size_t>(replica->local_replica_id()));
  return leaf(static_cast<size_t>(std::max(0, updated_component(*core()))));
}

void OnWriteVariable::assign(AssignOp op, const Tensor& value) {
  ReplicaContext* replica = owners_replica(assign_name(op));
  const Tensor checked = checked_value(value, assign_name(op));
  if (is_tracing()) return;
  if (replica != nullptr) return assign_in_replica(*replica, op, checked);
  const int updated = updated_component(*core());
  if (updated >= 0) return write(static_cast<size_t>(updated), op, checked);
  write_everywhere(op, checked);
}

// The others take the first one's result: `value` may be a component itself.
void OnWriteVariable::write_everywhere(AssignOp op, const Tensor& value) {
  write(0, op, value);
  for (const size_t i : distinct_components()) {
    if (i != 0) write(i, AssignOp::kAssign, component(0));
  }
}

void OnWriteVariable::check_aggregation(const char* operation) const {
  if (options().aggregation == VariableAggregation::NONE) {
    throw InvalidArgumentError(str("You must specify an aggregation method to update a ", kind(),
                                   " in Replica Context: make variable '", options().name,
                                   "' with .aggregation, or call ", operation, " in merge_call"));
  }
  if (options().aggregation == VariableAggregation::MEAN && !at::isFloatingType(dtype())) {
    throw InvalidArgumentError(str("variable '", options().name, "' of dtype ", dtype_name(dtype()),
                                   " has no MEAN over replicas; use SUM or ONLY_FIRST_REPLICA"));
  }
}

// The replicas' values become one, by the variable's aggregation; that is written everywhere.
void OnWriteVariable::assign_in_replica(ReplicaContext& replica, AssignOp op, const Tensor& value) {
  if (replica.num_replicas_in_sync() == 1) {
    return write_everywhere(op, value);
  }
  check_aggregation(assign_name(op));
  struct Frame {
    const OnWriteVariable* variable;
    AssignOp op;
    Tensor value;
  } mine{this, op, value};
  replica.merge("assign", &mine, [&](Strategy&, std::span<void* const> all) {
    std::vector<Tensor> values;
    for (void* one : all) {
      const Frame& frame = *static_cast<Frame*>(one);
      if (frame.variable != this || frame.op != op) {
        throw_other_call(*core(), values.size(), assign_name(frame.op), *frame.variable,
                         assign_name(op), *this);
      }
      values.push_back(frame.value);
    }
    const std::string call = call_of_tasks(assign_name(op));
    write_everywhere(op, aggregate(values, call));
  });
}

// What the replicas' values become by the variable's aggregation, which is not NONE.
Tensor OnWriteVariable::aggregate(at::ArrayRef<Tensor> values, const std::string& call) const {
  if (options().aggregation == VariableAggregation::ONLY_FIRST_REPLICA) {
    return core()->value_of_first_replica(values, call);
  }
  const Tensor sum = wide_sum(
      values, [&](at::ArrayRef<Tensor> wide) { return core()->sum_over_replicas(wide, call); });
  if (options().aggregation == VariableAggregation::MEAN) {
    return sum / core()->num_replicas_in_sync();
  }
  return sum_that_fits(sum, values[0], str("variable '", name(), "':").c_str());
}

void OnWriteVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  ReplicaContext* replica = owners_replica(scatter_name(op));
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  if (is_tracing()) return;
  if (replica != nullptr) return scatter_in_replica(*replica, op, checked);
  const int updated = updated_component(*core());
  if (updated < 0) return scatter_everywhere(op, std::move(checked));
  const auto own = static_cast<size_t>(updated);
  if (checked.values.is_alias_of(component(own))) checked.values = checked.values.clone();
  write_rows(own, op, checked);
}

void OnWriteVariable::scatter_everywhere(ScatterOp op, IndexedSlices slices) {
  for (const size_t i : distinct_components()) {
    if (slices.values.is_alias_of(component(i))) slices.values = slices.values.clone();
  }
  for (const size_t i : distinct_components()) write_rows(i, op, slices);
}

// The replicas' rows one after another, each row's values divided for MEAN.
void OnWriteVariable::scatter_in_replica(ReplicaContext& replica, ScatterOp op,
                                         const IndexedSlices& slices) {
  if (replica.num_replicas_in_sync() == 1) return scatter_everywhere(op, slices);
  const VariableAggregation aggregation = options().aggregation;
  const bool only_first = aggregation == VariableAggregation::ONLY_FIRST_REPLICA;
  if (takes_one_replicas_rows(op) && !only_first && aggregation != VariableAggregation::NONE) {
    throw UnimplementedError(
        str(scatter_name(op),
            " in a replica is only supported for variables with aggregation "
            "ONLY_FIRST_REPLICA; variable '",
            name(), "' has SUM or MEAN: call it in merge_call, or make the variable with another"));
  }
  check_aggregation(scatter_name(op));
  struct Frame {
    const OnWriteVariable* variable;
    ScatterOp op;
    const IndexedSlices* slices;
  } mine{this, op, &slices};
  replica.merge("scatter", &mine, [&](Strategy&, std::span<void* const> all) {
    std::vector<Tensor> values;
    std::vector<Tensor> indices;
    for (void* one : all) {
      const Frame& frame = *static_cast<Frame*>(one);
      if (frame.variable != this || frame.op != op) {
        throw_other_call(*core(), values.size(), scatter_name(frame.op), *frame.variable,
                         scatter_name(op), *this);
      }
      const bool counts = !only_first || core()->replica_id(static_cast<int>(values.size())) == 0;
      const int64_t rows = counts ? frame.slices->indices.numel() : 0;
      values.push_back(frame.slices->values.narrow(0, 0, rows));
      indices.push_back(frame.slices->indices.narrow(0, 0, rows));
    }
    const std::string call = call_of_tasks(scatter_name(op));
    IndexedSlices together = {core()->gather_over_replicas(values, 0, call),
                              core()->gather_over_replicas(indices, 0, call)};
    if (aggregation == VariableAggregation::MEAN) {
      together.values = together.values / core()->num_replicas_in_sync();
    }
    scatter_everywhere(op, std::move(together));
  });
}

}  // namespace cohort::internal
