#include "cohort/ops/kernels/matrix_product.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/kernels/panel_product.h"

namespace cohort::internal::plan {
namespace {

// Whose panel is read twice at most, so that a copy of it does not pay.
constexpr int64_t kFewRows = 2 * kTogether;

// Some columns of the right matrix.
struct Columns {
  int64_t first = 0;
  int64_t count = 0;

  int64_t width() const { return round_up(count, kVector); }
};

// Columns that lie apart in the right matrix, and whose numbers follow each other: a square of them
// and of `inner` at a time. Returns how many of `inner` are done.
COHORT_INLINE int64_t pack_squares(const MatrixProduct& p, const Columns& columns, float* to) {
  const int64_t whole = p.inner / kVector * kVector;
  for (int64_t k = 0; k < whole; k += kVector) {
    for (int64_t c = 0; c < columns.count; c += kVector) {
      Floats block[kVector];
      for (int64_t i = 0; i < kVector; ++i) {
        block[i] = Floats{};
        if (c + i >= columns.count) continue;
        load(p.right + (columns.first + c + i) * p.right_column + k, block[i]);
      }
      transpose(block);
      for (int64_t i = 0; i < kVector; ++i) store(block[i], to + (k + i) * columns.width() + c);
    }
  }
  return whole;
}

// Copies columns so that they lie beside each other, with zeros up to whole vectors.
COHORT_INLINE void pack_columns(const MatrixProduct& p, const Columns& columns, float* to) {
  int64_t done = 0;
  if (p.right_inner == 1 && p.right_column != 1) done = pack_squares(p, columns, to);
  const int64_t width = columns.width();
  for (int64_t k = done; k < p.inner; ++k) {
    const float* const from = p.right + k * p.right_inner + columns.first * p.right_column;
    for (int64_t c = 0; c < columns.count; ++c) to[k * width + c] = from[c * p.right_column];
    std::fill(to + k * width + columns.count, to + (k + 1) * width, 0.f);
  }
}

}  // namespace

int64_t matrix_scratch_size(int64_t rows, int64_t inner) { return kPanel * (rows + inner); }

COHORT_VECTOR_CLONES void multiply_matrices(const MatrixProduct& p, float* scratch) {
  float* const packed = scratch;
  float* const padded = scratch + kPanel * p.inner;  // a result that ends inside of a vector
  for (Columns columns; columns.first < p.columns; columns.first += kPanel) {
    columns.count = std::min(kPanel, p.columns - columns.first);
    const int64_t width = columns.width();
    const bool is_whole = columns.count == width;
    const bool in_place = is_whole && p.right_column == 1 && p.rows <= kFewRows;
    if (!in_place) pack_columns(p, columns, packed);
    PanelProduct panel{.rows = p.rows,
                       .inner = p.inner,
                       .left = p.left,
                       .left_row = p.left_row,
                       .left_inner = p.left_inner,
                       .panel = in_place ? p.right + columns.first : packed,
                       .panel_inner = in_place ? p.right_inner : width,
                       .result = is_whole ? p.result + columns.first : padded,
                       .result_row = is_whole ? p.result_row : width,
                       .adds = p.bias != nullptr};
    for (int64_t row = 0; p.bias != nullptr && row < p.rows; ++row) {
      float* const to = panel.result + row * panel.result_row;
      std::copy_n(p.bias + columns.first, columns.count, to);
      std::fill(to + columns.count, to + width, 0.f);
    }
    multiply_panel(panel, width / kVector);
    for (int64_t row = 0; !is_whole && row < p.rows; ++row) {
      std::copy_n(padded + row * width, columns.count,
                  p.result + row * p.result_row + columns.first);
    }
  }
}

void multiply_matrices_reference(const MatrixProduct& p) {
  for (int64_t i = 0; i < p.rows * p.columns; ++i) {
    const int64_t row = i / p.columns, column = i % p.columns;
    double sum = p.bias != nullptr ? p.bias[column] : 0;
    for (int64_t k = 0; k < p.inner; ++k) {
      sum += double{p.left[row * p.left_row + k * p.left_inner]} *
             double{p.right[k * p.right_inner + column * p.right_column]};
    }
    p.result[row * p.result_row + column] = static_cast<float>(sum);
  }
}

}  // namespace cohort::internal::plan
