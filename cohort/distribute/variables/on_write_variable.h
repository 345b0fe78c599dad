// The common part of ON_WRITE variables, whether each replica has a copy or all share one: replicas
// read the same value, and the values that they assign become one value first.
#pragma once

#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

class OnWriteVariable : public LocalVariable {
 public:
  using LocalVariable::LocalVariable;

  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;

 private:
  void write_everywhere(AssignOp op, const Tensor& value);
  void assign_in_replica(Replica& replica, AssignOp op, const Tensor& value);
  void scatter_everywhere(ScatterOp op, IndexedSlices slices);
  void scatter_in_replica(Replica& replica, ScatterOp op, const IndexedSlices& slices);
};

}  // namespace cohort::internal
