#include "cohort/ops/kernels/transposed_product.h"

#include <algorithm>

#include "cohort/ops/kernels/register_sums.h"

namespace cohort::internal::plan {
namespace {

template <class Vector, int kVectors, int kCount = kRows<Vector>>
COHORT_INLINE void add_panel(const float* panel, const TransposedProduct& product, int64_t row,
                             int64_t count, Block<Vector>& block) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      add_panel<Vector, kVectors, kCount - 1>(panel, product, row, count, block);
      return;
    }
  }
  Vector sums[kCount][kSums] = {};
  add_products<Vector, kCount, kVectors, kVectors - 1>(
      {product.left + row * product.inner, product.inner, product.inner}, panel, sums);
  keep_sums<Vector, kCount>(sums, block);
}

template <class Vector, int kVectors>
COHORT_INLINE void multiply_panel(const float* panel, const TransposedProduct& product,
                                  int64_t column) {
  for (int64_t row = 0; row < product.rows; row += kRows<Vector>) {
    const int64_t count = std::min<int64_t>(kRows<Vector>, product.rows - row);
    Block<Vector> block;
    add_panel<Vector, kVectors>(panel, product, row, count, block);
    for (int64_t r = 0; r < count; ++r) {
      float* const to = product.result + (row + r) * product.result_distance + column;
      for (int64_t v = 0; v < kVectors; ++v) {
        const int64_t first = v * kWidth<Vector>;
        store_some(block[r][v], std::min(kWidth<Vector>, product.columns - column - first),
                   to + first);
      }
    }
  }
}

template <class Vector>
COHORT_INLINE void multiply_all(const float* packed, const TransposedProduct& product) {
  constexpr int64_t kPanel = kSums * kWidth<Vector>;
  int64_t column = 0;
  for (; column + kPanel <= product.columns; column += kPanel, packed += kPanel * product.inner) {
    multiply_panel<Vector, kSums>(packed, product, column);
  }
  const int64_t rest = product.columns - column;
  if (rest > 3 * kWidth<Vector>) {
    multiply_panel<Vector, 4>(packed, product, column);
  } else if (rest > 2 * kWidth<Vector>) {
    multiply_panel<Vector, 3>(packed, product, column);
  } else if (rest > kWidth<Vector>) {
    multiply_panel<Vector, 2>(packed, product, column);
  } else if (rest > 0) {
    multiply_panel<Vector, 1>(packed, product, column);
  }
}

COHORT_WIDE void multiply_wide(const float* packed, const TransposedProduct& product) {
  multiply_all<Floats>(packed, product);
}
COHORT_HALF void multiply_half(const float* packed, const TransposedProduct& product) {
  multiply_all<HalfFloats>(packed, product);
}
void multiply_plain(const float* packed, const TransposedProduct& product) {
  multiply_all<HalfFloats>(packed, product);
}

}  // namespace

int64_t transposed_size(int64_t inner, int64_t columns, int64_t width) {
  return inner * round_up(columns, width);
}

void pack_transposed(int64_t inner, int64_t columns, int64_t width, const float* matrix,
                     float* packed) {
  constexpr int64_t kBlock = 16;  // a cache line of each row
  for (int64_t first = 0; first < columns; first += kSums * width) {
    const int64_t count = std::min(kSums * width, columns - first);
    const int64_t panel = round_up(count, width);
    for (int64_t block = 0; block < inner; block += kBlock) {
      const int64_t end = std::min(block + kBlock, inner);
      for (int64_t c = 0; c < panel; ++c) {
        const float* const row = matrix + (first + c) * inner;
        for (int64_t k = block; k < end; ++k) packed[k * panel + c] = c < count ? row[k] : 0.f;
      }
    }
    packed += inner * panel;
  }
}

void multiply_transposed(int64_t width, const float* packed, const TransposedProduct& product) {
  best_of(width, multiply_wide, multiply_half, multiply_plain)(packed, product);
}

}  // namespace cohort::internal::plan
