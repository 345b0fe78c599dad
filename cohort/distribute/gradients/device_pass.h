// The update of variables whose memory is not the host's: sums and formulas run where they are, and
// the host waits for nothing.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cohort/distribute/gradients/row_sums.h"
#include "cohort/distribute/gradients/slice_pass.h"

namespace cohort::internal {

// Thread safety: one thread. The threads of replicas may update their own components at once.
class DevicePass {
 public:
  DevicePass(std::span<const UpdateTarget> targets, const GradientSources& sources)
      : targets_(targets), from_(sources) {}

  // Updates the component of local replica `replica` of each target on devices, unless it is
  // another replica's storage. Every component gets the same bits: replicas' gradients are added up
  // in their order.
  void update(size_t replica, const UpdateStep& step, const optim::StepScalars& scalars) const;
  // The sum of the replicas' gradients of target `i`, dense, where its first component is;
  // undefined where no replica has one. May be a replica's gradient itself.
  Tensor sum(size_t i) const;

 private:
  Tensor dense_sum(size_t i, c10::Device device) const;
  // The sums of the rows that have gradients, where all gradients are sparse and the rule leaves
  // the other rows alone.
  std::optional<RowSums> sparse_sum(size_t i, c10::Device device,
                                    const optim::UpdateRule& rule) const;
  // The numbers of the rule on the device if the calling thread's step is recorded; else undefined.
  static Tensor recorded_numbers(const UpdateStep& step, DType dtype);
  // What one rule updates together.
  struct RuleSlice {
    const optim::UpdateRule& rule;
    optim::TensorSlice slice;
  };
  // The slice of a rule and dtype, empty where there was none.
  static optim::TensorSlice& slice_of(std::vector<RuleSlice>& slices, const optim::UpdateRule& rule,
                                      DType dtype, size_t num_slots);

  std::span<const UpdateTarget> targets_;
  GradientSources from_;
};

}  // namespace cohort::internal
