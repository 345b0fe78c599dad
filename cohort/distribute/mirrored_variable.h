// An ON_WRITE variable: its components are equal at all times.
#pragma once

#include "cohort/distribute/local_variable.h"

namespace cohort::internal {

class MirroredVariable final : public LocalVariable {
 public:
  using LocalVariable::LocalVariable;

  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  const char* kind() const override { return "MirroredVariable"; }

 private:
  void write_everywhere(AssignOp op, const Tensor& value);
  void assign_in_replica(distribute::ReplicaContext& replica, AssignOp op, const Tensor& value);
  void scatter_everywhere(ScatterOp op, IndexedSlices slices);
  void scatter_in_replica(distribute::ReplicaContext& replica, ScatterOp op,
                          const IndexedSlices& slices);
  // Errors: InvalidArgument (the replicas' values cannot be aggregated).
  void check_aggregation(const char* operation) const;
};

}  // namespace cohort::internal
