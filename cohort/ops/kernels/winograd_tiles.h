// The tiles of Winograd's F(2x2, 3x3): where their pixels are. Included by files of loops alone.
#pragma once

#include <cstdint>

#include "cohort/ops/kernels/vectors.h"
#include "cohort/ops/kernels/winograd_shape.h"

namespace cohort::internal::plan {

// The pixels of one tile after the other, kSize x kSize each, of which the first tile's first lies
// at (-rows_before, -columns_before).
template <int kSize, class T>
class TilePixels {
 public:
  struct Images {
    T* first = nullptr;
    int64_t height = 0;
    int64_t width = 0;
    int64_t channels = 0;
    int64_t rows_before = 0;
    int64_t columns_before = 0;
  };
  TilePixels(const Winograd& s, const Images& images, T* border, int64_t tile)
      : images_(images),
        border_(border),
        tile_rows_(s.tile_rows()),
        tile_columns_(s.tile_columns()),
        image_(tile / (tile_rows_ * tile_columns_)),
        row_(tile / tile_columns_ % tile_rows_),
        column_(tile % tile_columns_) {}

  int64_t channels() const { return images_.channels; }
  // Moves the addresses on to the next tile.
  COHORT_INLINE void next(T* (&at)[kSize * kSize]) {
    const int64_t top = 2 * row_ - images_.rows_before;
    const int64_t left = 2 * column_ - images_.columns_before;
    const int64_t first = (image_ * images_.height + top) * images_.width + left;
#pragma GCC unroll 4
    for (int r = 0; r < kSize; ++r) {
#pragma GCC unroll 4
      for (int c = 0; c < kSize; ++c) {
        const bool inside =
            top + r >= 0 && top + r < images_.height && left + c >= 0 && left + c < images_.width;
        at[r * kSize + c] =
            inside ? images_.first + (first + r * images_.width + c) * images_.channels : border_;
      }
    }
    if (++column_ < tile_columns_) return;
    column_ = 0;
    if (++row_ < tile_rows_) return;
    row_ = 0;
    ++image_;
  }

 private:
  const Images images_;
  T* const border_;
  const int64_t tile_rows_;
  const int64_t tile_columns_;
  int64_t image_;
  int64_t row_;
  int64_t column_;
};

using ImagePixels = TilePixels<4, const float>;
inline ImagePixels pixels_of_images(const Winograd& s, const float* in, const float* border,
                                    int64_t tile) {
  return {s, {in, s.height, s.width, s.channels, s.rows_before, s.columns_before}, border, tile};
}
template <class T>
TilePixels<2, T> pixels_of_results(const Winograd& s, T* out, T* border, int64_t tile) {
  return {s, {out, s.out_height, s.out_width, s.filters, 0, 0}, border, tile};
}

}  // namespace cohort::internal::plan
