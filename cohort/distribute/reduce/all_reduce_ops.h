// Reductions of values that lie on several GPUs of one machine to all of them at once.
#pragma once

#include <memory>
#include <vector>

#include "cohort/distribute/reduce/cross_device_ops.h"

namespace cohort::distribute {

// The base of the two classes below. Dense values whose destinations are their own devices are
// reduced in a batch; all others, and sparse ones, by ReductionToOneDevice, with a warning for
// sparse ones.
class COHORT_API AllReduceOps : public CrossDeviceOps {
 protected:
  // num_packs: into how many parts the values of a batch are put together, so that there are as
  // many reductions; 0: one for each value. Errors: InvalidArgument (negative; names `reduction`).
  AllReduceOps(int num_packs, const char* reduction);

  Mirrored<Tensor> reduce_implementation(ReduceOp op, const PerReplica<Tensor>& value,
                                         const Destinations& destinations) const override;
  std::vector<Mirrored<Tensor>> batch_reduce_implementation(
      ReduceOp op, const std::vector<Pair>& pairs) const override;

  // The sum of dense, contiguous tensors of one shape and dtype, for each of their devices. They
  // are nobody else's: the sums may be written over them.
  virtual std::vector<Tensor> all_reduce_sum(const std::vector<Tensor>& values) const = 0;

 private:
  std::vector<Mirrored<Tensor>> all_reduce(ReduceOp op,
                                           const std::vector<PerReplica<Tensor>>& values) const;

  int num_packs_;
};

// Sums by NCCL, between GPUs, in its own order: the same bits on each of them. NCCL is opened, and
// the GPUs are connected, by the first reduction, which needs a second or two; the host waits for
// no other. A reduction's errors: InvalidArgument (values that are not on GPUs of their own),
// FailedPrecondition (no NCCL that can be used: says what to do), Unavailable (NCCL failed).
class COHORT_API NcclAllReduce : public AllReduceOps {
 public:
  // Errors: InvalidArgument (num_packs below 0).
  explicit NcclAllReduce(int num_packs = 1);

 protected:
  std::vector<Tensor> all_reduce_sum(const std::vector<Tensor>& values) const override;

 private:
  class Groups;
  std::shared_ptr<Groups> groups_;
};

// For machines whose eight GPUs form two groups of four with fast links inside: each group adds up
// on its first device, the two sums are added, and the result goes back the same way. On other
// devices it takes the same way: the first half, the second half.
class COHORT_API HierarchicalCopyAllReduce : public AllReduceOps {
 public:
  // Errors: InvalidArgument (num_packs below 0).
  explicit HierarchicalCopyAllReduce(int num_packs = 1);

 protected:
  std::vector<Tensor> all_reduce_sum(const std::vector<Tensor>& values) const override;
};

}  // namespace cohort::distribute
