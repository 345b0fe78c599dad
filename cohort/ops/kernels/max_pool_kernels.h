// The loops of max-pooling, over arrays [batch, height, width, channels] without gaps.
#pragma once

#include <cstdint>

namespace cohort::internal {

// Windows that tile an image from its first row and column on; what fills no window is left out.
struct TiledImages {
  int64_t batch = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  int64_t tile_height = 1;
  int64_t tile_width = 1;

  int64_t out_height() const { return height / tile_height; }
  int64_t out_width() const { return width / tile_width; }
  // Rows of the output in all images, the unit in which work is divided.
  int64_t out_rows() const { return batch * out_height(); }
  int64_t tile_size() const { return tile_height * tile_width; }
};

// The place in a tile, row by row, that no element has.
inline constexpr int kNoPlace = 255;
inline constexpr int64_t kMaxTileSize = kNoPlace;

// Each is one slice of the work: the output rows [first, last). T is float or double.

// out: [batch, out_height, out_width, channels], the maxima (NaN if there is one), plus the
// channel's element of `bias` (nullptr: none), and of 0 too with `relu`; places: the same shape,
// where in its tile each stands, kNoPlace where `relu` made it 0.
template <class T>
void max_pool_rows(const TiledImages& images, int64_t first, int64_t last, const T* bias, bool relu,
                   const T* in, T* out, uint8_t* places);

// Puts each of `values` (shape of `places`) back to its place in `image`; zeros everywhere else.
template <class T>
void unpool_rows(const TiledImages& images, int64_t first, int64_t last, const T* values,
                 const uint8_t* places, T* image);

// The opposite: what `image` has at each place; 0 for kNoPlace.
template <class T>
void pick_rows(const TiledImages& images, int64_t first, int64_t last, const T* image,
               const uint8_t* places, T* values);

// Adds to sums[channels] the elements of `values` (shape of `places`) that have a place.
void sum_placed(const TiledImages& images, const float* values, const uint8_t* places,
                double* sums);

}  // namespace cohort::internal
