// Makes one write of what the replicas of a step bring to an ON_WRITE variable, wherever its values
// are.
#pragma once

#include <string_view>

#include "cohort/core/function_ref.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

// The target of a replica's write.
struct WriteTarget {
  const VariableImpl& variable;
  std::string_view name;  // the variable's, or that of its shard, which is written alone
  std::string_view call;  // by which tasks see that they combine values of one variable
};

// These two are COLLECTIVE over the replicas. One of them, across replicas, calls `write` with what
// all bring, by the variable's aggregation.
// Errors: InvalidArgument (a variable without aggregation, or whose dtype has none of that kind,
// before replicas meet; a sum that the dtype cannot hold), FailedPrecondition (a replica writes to
// another target, or in another way; names both), Unimplemented (a scatter that has no aggregate).
//
// Shapes: `value` [target..] -> [target..].
void assign_together(Replica& replica, const WriteTarget& target, AssignOp op, const Tensor& value,
                     FunctionRef<void(const Tensor&)> write);
// The replicas' rows one after another, each row's values divided for MEAN.
// `slices`: as checked_slices returns them, of the same variable.
void scatter_together(Replica& replica, const WriteTarget& target, ScatterOp op,
                      const IndexedSlices& slices, FunctionRef<void(const IndexedSlices&)> write);

// Truths are assigned and their rows updated; nothing is added to them or divided by them.
// Errors: InvalidArgument (the variable is of bool, and the operation computes).
void check_computes(const VariableImpl& variable, AssignOp op);
void check_computes(const VariableImpl& variable, ScatterOp op);

// Errors: InvalidArgument (truths have neither SUM nor MEAN).
void check_can_aggregate(const VariableImpl& variable);

}  // namespace cohort::internal
