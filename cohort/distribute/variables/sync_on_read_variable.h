// An ON_READ variable: each replica writes its own component; reading across replicas aggregates.
// An update (StrategyExtended) goes through the components one by one.
#pragma once

#include <optional>
#include <vector>

#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

class SyncOnReadVariable final : public LocalVariable {
 public:
  using LocalVariable::LocalVariable;

  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void assign_number(AssignOp op, const at::Scalar& number) override;
  // Errors: Unimplemented under strategies, as in TensorFlow.
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  const char* kind() const override { return "SyncOnReadVariable"; }

  // The aggregate, which any variable can restore and TensorFlow reads, and also the components
  // themselves, of which each task of a group brings its own: a restore on the same number of
  // replicas, in whatever tasks, continues bit for bit.
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 protected:
  // Writes a replica's part of what is to be the aggregate. SUM: value / components, so that the
  // sum is the value again; for integers the first component gets the remainder.
  void write_restored(size_t replica, const Tensor& value) override;

 private:
  // The component that the calling code acts on alone: its replica's, or that of the update it is
  // in.
  // Errors: those of owners_replica.
  std::optional<size_t> own_component(const char* operation) const;
  bool saves_components() const;
  std::vector<int64_t> stacked_shape() const;
  std::optional<train::TensorSlice> own_rows() const;
  Tensor aggregate() const;
};

}  // namespace cohort::internal
