// The elements of a strided tensor as data_ptr() shows them.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Whether the tensor's memory holds its elements in order. The memory of a view of conjugates, or
// of negatives, holds the original numbers, with other signs.
inline bool has_contiguous_elements(const Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

// The tensor itself if its memory holds its elements in order, else a copy. Tensor::contiguous()
// does not copy views of conjugates or negatives.
inline Tensor contiguous_elements(const Tensor& tensor) {
  if (has_contiguous_elements(tensor)) return tensor;
  return tensor.resolve_conj().resolve_neg().contiguous();
}

}  // namespace cohort::internal
