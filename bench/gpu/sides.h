// The sides of the GPU benchmark that are written in C++.
#pragma once

#include <functional>
#include <memory>

#include "work.h"

namespace bench {

class GpuTraining {
 public:
  virtual ~GpuTraining() = default;
  // Trains for `count` steps, which the caller's clock times, and waits for the device at their end.
  virtual void run(int64_t count) = 0;
  // The loss of the last step.
  virtual double loss() const = 0;
};

// Sides "run" (the guide's loop: strategy.run, the loss read in each step) and "fit", with a
// MirroredStrategy of one device; nullptr for other sides.
std::unique_ptr<GpuTraining> train_with_cohort(const GpuWork& work);

// Sides "loop" (torch::optim), "fused" (libtorch's fused update) and "graph" (the same, and the whole step
// one CUDA graph; on a CPU as "fused"); nullptr for other sides.
std::unique_ptr<GpuTraining> train_with_libtorch(const GpuWork& work);

}  // namespace bench
