#include "cohort/keras/base/masks.h"

#include <algorithm>
#include <utility>

#include "cohort/keras/base/tensor_notes.h"

namespace cohort::internal {
namespace {

TensorNotes& masks_of_this_thread() {
  thread_local TensorNotes masks;
  return masks;
}

}  // namespace

Tensor mask_of(const Tensor& values) {
  const TensorNotes& masks = masks_of_this_thread();
  return masks.empty() ? Tensor() : masks.find(values);
}

Tensor with_mask(Tensor values, const Tensor& mask) {
  if (mask.defined()) masks_of_this_thread().add(values, mask);
  return values;
}

Tensor keep_mask(const Tensor& input, Tensor output) {
  return with_mask(std::move(output), mask_of(input));
}

Tensor mask_factors(const Tensor& mask, const Tensor& values) {
  Tensor factors = mask.to(values.device(), values.scalar_type());
  while (factors.dim() < values.dim()) factors = factors.unsqueeze(-1);
  return factors;
}

double large_negative(const Tensor& scores) {
  return scores.scalar_type() == DType::Half ? -65504 : -1e9;  // float16's lowest
}

Tensor count_unmasked(const Tensor& mask, const Tensor& losses) {
  const int64_t each = losses.numel() / std::max<int64_t>(mask.numel(), 1);
  return (mask.sum().to(losses.device(), losses.scalar_type()) * each).clamp_min(1);
}

}  // namespace cohort::internal
