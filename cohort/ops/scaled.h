// A gradient times a number.
#pragma once

#include "cohort/core/tensor.h"

namespace cohort::internal {

// Of a sparse tensor without entries, itself: libtorch 1.13 forgets of what shape its entries would be, so that whoever
// takes it by rows refuses the product.
// Shapes: factor [], of the gradient's dtype.
inline Tensor scaled(const Tensor& gradient, const Tensor& factor) {
  return gradient.is_sparse() && gradient._nnz() == 0 ? gradient : gradient * factor;
}

inline Tensor scaled(const Tensor& gradient, double factor) {
  return gradient.is_sparse() && gradient._nnz() == 0 ? gradient : gradient * factor;
}

}  // namespace cohort::internal
