// Products of matrices whose sums stay in registers, of kVector numbers each. For loops that are
// compiled for several processors; included by files of loops alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cohort/ops/kernels/register_sums.h"

namespace cohort::internal::plan {

inline constexpr int64_t kPanel = kSums * kVector;  // columns that are multiplied together,
inline constexpr int kTogether = kRows<Floats>;     // and rows

// Rows times a panel of columns. How far apart numbers are: from one row to the next, and from one
// that is multiplied to the next.
struct PanelProduct {
  int64_t rows = 0;
  int64_t inner = 0;
  const float* left = nullptr;
  int64_t left_row = 0;
  int64_t left_inner = 0;
  const float* panel = nullptr;
  int64_t panel_inner = 0;
  float* result = nullptr;
  int64_t result_row = 0;
  bool adds = false;  // to what the result was
};

template <int kVectors, int kCount = kTogether>
COHORT_INLINE void multiply_rows(const PanelProduct& p, int64_t row, int64_t count) {
  if constexpr (kCount > 1) {
    if (count < kCount) {
      multiply_rows<kVectors, kCount - 1>(p, row, count);
      return;
    }
  }
  float* const result = p.result + row * p.result_row;
  Floats sums[kCount][kVectors] = {};
  if (p.adds) {
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) load(result + r * p.result_row + v * kVector, sums[r][v]);
    }
  }
  const float* left = p.left + row * p.left_row;
  const float* panel = p.panel;
  for (int64_t k = 0; k < p.inner; ++k, left += p.left_inner, panel += p.panel_inner) {
    Floats factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) load(panel + v * kVector, factors[v]);
#pragma GCC unroll 6
    for (int r = 0; r < kCount; ++r) {
      const float number = left[r * p.left_row];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] += factors[v] * number;
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) store(sums[r][v], result + r * p.result_row + v * kVector);
  }
}

template <int kVectors>
COHORT_INLINE void multiply_panel(const PanelProduct& p) {
  for (int64_t row = 0; row < p.rows; row += kTogether) {
    multiply_rows<kVectors>(p, row, std::min<int64_t>(kTogether, p.rows - row));
  }
}

// vectors: of the panel.
COHORT_INLINE void multiply_panel(const PanelProduct& p, int64_t vectors) {
  switch (vectors) {
    case 1:
      return multiply_panel<1>(p);
    case 2:
      return multiply_panel<2>(p);
    case 3:
      return multiply_panel<3>(p);
    default:
      return multiply_panel<4>(p);
  }
}

}  // namespace cohort::internal::plan
