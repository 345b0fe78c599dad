// Products with a matrix that is packed once and read often.
#pragma once

#include <cstdint>

namespace cohort::internal::plan {

// Products with a matrix [columns, inner] from the right, transposed. width: the numbers of a
// vector, kVector or half of it. Sums do not depend on how many rows there are.
int64_t transposed_size(int64_t inner, int64_t columns, int64_t width);
void pack_transposed(int64_t inner, int64_t columns, int64_t width, const float* matrix,
                     float* packed);
struct TransposedProduct {
  int64_t inner = 0;
  int64_t columns = 0;
  int64_t rows = 0;
  const float* left = nullptr;  // [rows, inner]
  float* result = nullptr;
  int64_t result_distance = 0;
};
void multiply_transposed(int64_t width, const float* packed, const TransposedProduct& product);

}  // namespace cohort::internal::plan
