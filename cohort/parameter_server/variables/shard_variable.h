// One shard of a variable on ps tasks, as a variable.
#pragma once

#include <memory>
#include <vector>

#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

// Reads and writes are those of its rows of the whole variable, so that both agree in a step.
class ShardVariable final : public VariableImpl {
 public:
  ShardVariable(std::shared_ptr<ServedVariable> whole, size_t index);

  int ps() const { return shard().place.ps; }
  const char* kind() const override { return "Variable"; }
  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  Tensor read_rows(const Tensor& ids) const override;
  // Errors: FailedPrecondition: gradients are those of the whole variable.
  Tensor tape_source() const override;
  std::string device() const override;
  // Errors: FailedPrecondition, for the same reason.
  void bind_component(size_t replica, Tensor leaf) override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  const ServedVariable::Shard& shard() const { return whole_->placed_shards()[index_]; }
  [[noreturn]] void throw_not_whole(const char* what) const;

  const std::shared_ptr<ServedVariable> whole_;
  const size_t index_;
};

}  // namespace cohort::internal
