#include "cohort/core/structure/host_buffer.h"

#include <ATen/ops/empty.h>

namespace cohort::internal {

Tensor host_buffer(at::IntArrayRef shape, DType dtype, c10::Device device) {
  return at::empty(shape, at::dtype(dtype).pinned_memory(device.is_cuda()));
}

Tensor copied_to(const Tensor& host, c10::Device device) {
  const Tensor buffer = host_buffer(host.sizes(), host.scalar_type(), device);
  buffer.copy_(host);
  return buffer.to(device, /*non_blocking=*/true);
}

}  // namespace cohort::internal
