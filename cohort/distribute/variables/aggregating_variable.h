// An ON_WRITE variable of which there is one copy, on the parameter device: all replicas read it,
// and an update is applied to it once.
#pragma once

#include <c10/util/ArrayRef.h>

#include <vector>

#include "cohort/distribute/variables/on_write_variable.h"

namespace cohort::internal {

// Replicas whose device shares the parameter device's memory compute with the copy itself. Others
// have a working copy, brought up to date by the first read after a write.
class AggregatingVariable final : public OnWriteVariable {
 public:
  // `copy`: contiguous, on the parameter device. `replica_devices`: one per local replica of
  // `core`.
  AggregatingVariable(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec,
                      const Tensor& copy, c10::ArrayRef<c10::Device> replica_devices);

  Tensor read() const override;
  const char* kind() const override { return "AggregatingVariable"; }
  size_t num_copies() const override { return 1; }

 private:
  bool has_working_copy(size_t replica) const;

  // The version of each replica's working copy when it was last brought up to date; -1: never.
  mutable std::vector<int64_t> fetched_;
};

}  // namespace cohort::internal
