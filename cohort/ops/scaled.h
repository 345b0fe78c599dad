// A gradient times a number.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The product. A sparse tensor without entries is returned as it is: libtorch 1.13 forgets of what
// shape its entries would be, so that whoever takes it by rows refuses the product. factor: a
// double, or a tensor of the gradient's dtype. Shapes: factor [].
template <class Factor>
Tensor scaled(const Tensor& gradient, const Factor& factor) {
  return gradient.is_sparse() && gradient._nnz() == 0 ? gradient : gradient * factor;
}

}  // namespace cohort::internal
