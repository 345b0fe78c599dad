#include "cohort/core/structure/host_buffer.h"

#include <ATen/ops/empty.h>

namespace cohort::internal {

Tensor host_buffer(at::IntArrayRef shape, DType dtype, c10::Device device) {
  return at::empty(shape, at::dtype(dtype).pinned_memory(device.is_cuda()));
}

}  // namespace cohort::internal
