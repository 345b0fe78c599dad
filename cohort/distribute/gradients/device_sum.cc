#include "cohort/distribute/gradients/device_sum.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>

namespace cohort::internal {

Tensor moved_gradient(const Tensor& gradient, c10::Device device) {
  if (gradient.layout() == at::kStrided) return gradient.to(device, /*non_blocking=*/true);
  if (gradient.device() == device) return gradient;
  return at::_sparse_coo_tensor_unsafe(gradient._indices().to(device, /*non_blocking=*/true),
                                       gradient._values().to(device, /*non_blocking=*/true),
                                       gradient.sizes());
}

void DeviceSum::add(const Tensor& gradient) {
  Tensor here = moved_gradient(gradient, device_);
  if (here.layout() != at::kStrided) here = here.to_dense();
  if (!sum_.defined()) {
    sum_ = here;
  } else if (is_own_) {
    sum_.add_(here);
  } else {
    sum_ = sum_ + here;
    is_own_ = true;
  }
}

}  // namespace cohort::internal
