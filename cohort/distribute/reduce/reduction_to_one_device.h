// Reduces all values on one device, then copies the result to where it is wanted.
//
//   ReductionToOneDevice ops("CPU:0");
//   ops.reduce(ReduceOp::MEAN, losses, losses);
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/distribute/reduce/cross_device_ops.h"

namespace cohort::distribute {

// Adds dense values, which are on one device and have one shape, to a value of that shape.
using AccumulationFunction = std::function<Tensor(const std::vector<Tensor>&)>;

class COHORT_API ReductionToOneDevice : public CrossDeviceOps {
 public:
  // reduce_to_device: empty: the first of the destinations. accumulation_fn: null: adds the
  // components in their order. The first ten reductions of a process log where they take place.
  // Errors: InvalidArgument (not a device name, or no such device).
  explicit ReductionToOneDevice(std::string_view reduce_to_device = "",
                                AccumulationFunction accumulation_fn = nullptr);

 protected:
  // Errors: also InvalidArgument (accumulation_fn's result has another shape), what it throws.
  Mirrored<Tensor> reduce_implementation(ReduceOp op, const PerReplica<Tensor>& value,
                                         const Destinations& destinations) const override;

 private:
  Tensor accumulate(const std::vector<Tensor>& values) const;

  std::string device_;
  AccumulationFunction accumulation_fn_;
};

}  // namespace cohort::distribute
