#include "cohort/distribute/mirrored_variable.h"

#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

using distribute::ReplicaContext;
using distribute::Strategy;
using distribute::VariableAggregation;

Tensor MirroredVariable::read() const {
  const ReplicaContext* replica = owners_replica("read");
  if (replica != nullptr) return leaf(static_cast<size_t>(replica->local_replica_id()));
  const ContextFrame* frame = current_frame();
  const bool updating = frame != nullptr && frame->update_component >= 0;
  return leaf(updating ? static_cast<size_t>(frame->update_component) : 0);
}

void MirroredVariable::assign(AssignOp op, const Tensor& value) {
  ReplicaContext* replica = owners_replica(assign_name(op));
  const Tensor checked = checked_value(value, assign_name(op));
  if (replica != nullptr) return assign_in_replica(*replica, op, checked);
  const ContextFrame* frame = current_frame();
  if (frame != nullptr && frame->update_component >= 0) {
    return write(static_cast<size_t>(frame->update_component), op, checked);
  }
  write_everywhere(op, checked);
}

// The others take the first one's result: `value` may be a component itself.
void MirroredVariable::write_everywhere(AssignOp op, const Tensor& value) {
  write(0, op, value);
  for (const size_t i : distinct_components()) {
    if (i != 0) write(i, AssignOp::kAssign, component(0));
  }
}

// The replicas' values become one, by the variable's aggregation; that is written everywhere.
void MirroredVariable::assign_in_replica(ReplicaContext& replica, AssignOp op,
                                         const Tensor& value) {
  const VariableAggregation aggregation = options().aggregation;
  if (replica.num_replicas_in_sync() == 1) {
    return write_everywhere(op, value);
  }
  if (aggregation == VariableAggregation::NONE) {
    throw InvalidArgumentError(
        str("You must specify an aggregation method to update a MirroredVariable in Replica "
            "Context: make variable '",
            options().name, "' with .aggregation, or call ", assign_name(op), " in merge_call"));
  }
  if (aggregation == VariableAggregation::MEAN && !at::isFloatingType(dtype())) {
    throw InvalidArgumentError(str("variable '", options().name, "' of dtype ", dtype_name(dtype()),
                                   " has no MEAN over replicas; use SUM or ONLY_FIRST_REPLICA"));
  }
  struct Frame {
    const MirroredVariable* variable;
    AssignOp op;
    Tensor value;
  } mine{this, op, value};
  replica.merge("assign", &mine, [&](Strategy&, std::span<void* const> all) {
    std::vector<Tensor> values;
    for (void* one : all) {
      const Frame& frame = *static_cast<Frame*>(one);
      if (frame.variable != this || frame.op != op) {
        throw FailedPreconditionError(
            str("replica ", core()->replica_id(static_cast<int>(values.size())), " calls ",
                assign_name(frame.op), " of variable '", frame.variable->options().name,
                "' while another calls ", assign_name(op), " of '", options().name,
                "'; every replica must make the same calls in one order"));
      }
      values.push_back(frame.value);
    }
    Tensor aggregate = aggregation == VariableAggregation::ONLY_FIRST_REPLICA
                           ? core()->value_of_first_replica(values)
                           : core()->sum_over_replicas(values);
    if (aggregation == VariableAggregation::MEAN)
      aggregate = aggregate / core()->num_replicas_in_sync();
    write_everywhere(op, aggregate);
  });
}

}  // namespace cohort::internal
