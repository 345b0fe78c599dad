// Adds up gradients on a device.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The gradient on `device`. The host does not wait.
Tensor moved_gradient(const Tensor& gradient, c10::Device device);

// The dense sum of gradients, in the order in which they come. The host waits for nothing. Under a
// NoGradGuard.
class DeviceSum {
 public:
  explicit DeviceSum(c10::Device device) : device_(device) {}

  void add(const Tensor& gradient);
  // Undefined where nothing was added; where one gradient was, perhaps this gradient itself.
  const Tensor& sum() const { return sum_; }

 private:
  const c10::Device device_;
  Tensor sum_;
  bool is_own_ = false;
};

}  // namespace cohort::internal
