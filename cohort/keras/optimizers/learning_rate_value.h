// An optimizer's learning rate where it is a number.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/variable.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

// A number that is kept in the dtype of Keras's variable, so that a checkpoint brings back what was
// saved, bit for bit. Thread safety: any thread.
class LearningRateValue final : public train::Trackable {
 public:
  // Errors: InvalidArgument (not finite in `dtype`).
  LearningRateValue(double value, DType dtype);

  // Makes it the value of a variable, so that workers use in their steps what the task that hands
  // the steps out has set. It lies beside `neighbour`, which steps read: they make no call for it
  // alone. Not from several threads.
  void share(const std::string& name, const Variable& neighbour);

  // In a task that cannot read the variable: what its own program has set.
  // Errors: where it is shared, those of Variable's.
  double get() const;
  void set(double value);  // Errors: also as the constructor

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  double rounded(double value) const;
  Tensor tensor_of(double value) const;

  const DType dtype_;
  std::atomic<double> value_;
  Variable variable_;
  std::atomic<bool> is_shared_{false};  // variable_ stays from then on
};

}  // namespace cohort::internal
