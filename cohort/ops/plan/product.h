// oneDNN's products of matrices.
#pragma once

#include "cohort/ops/plan/onednn.h"

namespace cohort::internal::plan {

using Product = dnnl::matmul::primitive_desc;

struct ProductSizes {
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
};
// How far the next row and the next column are.
struct Stride {
  int64_t row = 0;
  int64_t column = 1;
};

// [rows, inner] x [inner, columns] -> [rows, columns], with a bias [columns] or none. result_row:
// how far the result's next row is; 0: there are no gaps.
// Errors: NotPlanned.
Product describe_product(const ProductSizes& sizes, const Stride& left, const Stride& right,
                         bool adds_bias, int64_t result_row = 0);

}  // namespace cohort::internal::plan
