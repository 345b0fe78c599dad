// An ON_READ variable: each replica writes its own component; reading across replicas aggregates.
// An update (StrategyExtended) goes through the components one by one.
#pragma once

#include <optional>
#include <vector>

#include "cohort/distribute/variables/local_variable.h"

namespace cohort::internal {

class SyncOnReadVariable final : public LocalVariable {
 public:
  SyncOnReadVariable(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec,
                     std::vector<Tensor> components);

  const std::vector<Tensor>& kept_components() const override;

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
  // Writes each replica's part of what is to be the aggregate. SUM: value / components, so that the
  // sum is the value again; for integers the first component gets the remainder.
  void write_restored(const Tensor& value) override;
  bool is_of_each_replica() const override { return true; }
  void write_state(int replica, std::string& out) const override;
  void read_state(int replica, std::string_view bytes) override;
  void host(collective::ReplicaRange range) override;

 private:
  // Whether the components of all replicas are here, as they are between steps.
  bool knows_all() const;
  void write_everywhere(AssignOp op, const Tensor& value);
  // The component that the calling code acts on alone: its replica's, or that of the update it is
  // in.
  // Errors: those of owners_replica.
  std::optional<size_t> own_component(const char* operation) const;
  bool saves_components() const;
  std::vector<int64_t> stacked_shape() const;
  std::optional<train::TensorSlice> own_rows() const;
  Tensor aggregate() const;

  // The components of all replicas, where they move from task to task; this task's among them are
  // the local ones.
  std::vector<Tensor> of_all_;
};

}  // namespace cohort::internal
