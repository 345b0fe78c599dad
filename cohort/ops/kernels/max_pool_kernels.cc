#include "cohort/ops/kernels/max_pool_kernels.h"

#include <algorithm>
#include <type_traits>

#include "cohort/core/cpu/vector_clones.h"

namespace cohort::internal {
namespace {

// Places are kept as wide as values inside of loops, so that both fill vectors alike.
template <class T>
using Place = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// Calls body(row of `out`, tile row's first element in the image) for [first, last).
template <class Body>
inline __attribute__((always_inline)) void for_each_row(const TiledImages& images, int64_t first,
                                                        int64_t last, const Body& body) {
  const int64_t row_size = images.width * images.channels;
  for (int64_t row = first; row < last; ++row) {
    const int64_t image = row / images.out_height();
    const int64_t y = row % images.out_height() * images.tile_height;
    body(row * images.out_width() * images.channels, (image * images.height + y) * row_size);
  }
}

// The offset in an image of place `place` of a tile, from the tile's first element.
inline int64_t offset_of(const TiledImages& images, int64_t place) {
  return (place / images.tile_width * images.width + place % images.tile_width) * images.channels;
}

template <class T>
inline __attribute__((always_inline)) void finish(bool relu, T best, Place<T> place, T& out,
                                                  uint8_t& out_place) {
  const bool cut = relu && best <= 0;  // not where it is NaN
  out = cut ? T(0) : best;
  out_place = static_cast<uint8_t>(cut ? kNoPlace : place);
}

template <class T>
inline __attribute__((always_inline)) void keep_larger(T value, Place<T> place, T& best,
                                                       Place<T>& best_place) {
  const bool take = value > best || value != value;
  best = take ? value : best;
  best_place = take ? place : best_place;
}

// The tile of nearly every model, two by two.
template <class T>
inline __attribute__((always_inline)) void max_of_four(const T* __restrict upper,
                                                       const T* __restrict lower, int64_t channels,
                                                       const T* __restrict bias, bool relu,
                                                       T* __restrict out,
                                                       uint8_t* __restrict places) {
  for (int64_t c = 0; c < channels; ++c) {
    T best = upper[c];
    Place<T> place = 0;
    keep_larger<T>(upper[channels + c], 1, best, place);
    keep_larger<T>(lower[c], 2, best, place);
    keep_larger<T>(lower[channels + c], 3, best, place);
    finish(relu, bias == nullptr ? best : best + bias[c], place, out[c], places[c]);
  }
}

template <class T>
inline __attribute__((always_inline)) void max_of_tile(const TiledImages& images, const T* tile,
                                                       const T* bias, bool relu, T* out,
                                                       uint8_t* places) {
  for (int64_t c = 0; c < images.channels; ++c) {
    T best = tile[c];
    Place<T> best_place = 0;
    for (int64_t place = 1; place < images.tile_size(); ++place) {
      keep_larger<T>(tile[offset_of(images, place) + c], static_cast<Place<T>>(place), best,
                     best_place);
    }
    finish(relu, bias == nullptr ? best : best + bias[c], best_place, out[c], places[c]);
  }
}

template <class T>
inline __attribute__((always_inline)) void max_pool(const TiledImages& images, int64_t first,
                                                    int64_t last, const T* bias, bool relu,
                                                    const T* in, T* out, uint8_t* places) {
  const bool two_by_two = images.tile_height == 2 && images.tile_width == 2;
  const int64_t channels = images.channels;
  for_each_row(images, first, last, [&](int64_t to, int64_t from) {
    for (int64_t x = 0; x < images.out_width(); ++x, to += channels) {
      const T* tile = in + from + x * images.tile_width * channels;
      if (two_by_two) {
        max_of_four(tile, tile + images.width * channels, channels, bias, relu, out + to,
                    places + to);
      } else {
        max_of_tile(images, tile, bias, relu, out + to, places + to);
      }
    }
  });
}

template <class T>
inline __attribute__((always_inline)) void unpool(const TiledImages& images, int64_t first,
                                                  int64_t last, const T* values,
                                                  const uint8_t* places, T* image) {
  const int64_t channels = images.channels;
  const int64_t row_size = images.width * channels;
  const int64_t used = images.out_width() * images.tile_width * channels;
  for_each_row(images, first, last, [&](int64_t from, int64_t to) {
    for (int64_t y = 0; y < images.tile_height; ++y) {
      T* row = image + to + y * row_size;
      for (int64_t x = 0; x < images.out_width(); ++x) {
        const T* __restrict value = values + from + x * channels;
        const uint8_t* __restrict value_place = places + from + x * channels;
        for (int64_t k = 0; k < images.tile_width; ++k) {
          T* __restrict pixel = row + (x * images.tile_width + k) * channels;
          const auto place = static_cast<uint8_t>(y * images.tile_width + k);
          for (int64_t c = 0; c < channels; ++c) {
            pixel[c] = value_place[c] == place ? value[c] : T(0);
          }
        }
      }
      std::fill(row + used, row + row_size, T(0));
    }
  });
  // The rows below the last tile belong to whoever has an image's last row of tiles.
  const int64_t used_rows = images.out_height() * images.tile_height;
  for (int64_t n = 0; n < images.batch; ++n) {
    const int64_t last_row = (n + 1) * images.out_height() - 1;
    if (last_row < first || last_row >= last) continue;
    T* end = image + (n + 1) * images.height * row_size;
    std::fill(end - (images.height - used_rows) * row_size, end, T(0));
  }
}

template <class T>
inline __attribute__((always_inline)) void sum_values(const TiledImages& images, const T* values,
                                                      const uint8_t* places, double* sums) {
  // A row in T, whose rounding is small, and the rows in double.
  constexpr int64_t kChannels = 64;
  for (int64_t row = 0; row < images.out_rows(); ++row) {
    const int64_t from = row * images.out_width() * images.channels;
    for (int64_t first = 0; first < images.channels; first += kChannels) {
      const int64_t count = std::min(kChannels, images.channels - first);
      T row_sums[kChannels] = {};
      for (int64_t x = 0; x < images.out_width(); ++x) {
        const T* __restrict value = values + from + x * images.channels + first;
        const uint8_t* __restrict place = places + from + x * images.channels + first;
        for (int64_t c = 0; c < count; ++c) row_sums[c] += place[c] == kNoPlace ? T(0) : value[c];
      }
      for (int64_t c = 0; c < count; ++c) sums[first + c] += row_sums[c];
    }
  }
}

COHORT_VECTOR_CLONES void max_pool_float(const TiledImages& images, int64_t first, int64_t last,
                                         const float* bias, bool relu, const float* in, float* out,
                                         uint8_t* places) {
  max_pool(images, first, last, bias, relu, in, out, places);
}
COHORT_VECTOR_CLONES void max_pool_double(const TiledImages& images, int64_t first, int64_t last,
                                          const double* bias, bool relu, const double* in,
                                          double* out, uint8_t* places) {
  max_pool(images, first, last, bias, relu, in, out, places);
}
COHORT_VECTOR_CLONES void unpool_float(const TiledImages& images, int64_t first, int64_t last,
                                       const float* values, const uint8_t* places, float* image) {
  unpool(images, first, last, values, places, image);
}
COHORT_VECTOR_CLONES void unpool_double(const TiledImages& images, int64_t first, int64_t last,
                                        const double* values, const uint8_t* places,
                                        double* image) {
  unpool(images, first, last, values, places, image);
}

COHORT_VECTOR_CLONES void sum_placed_float(const TiledImages& images, const float* values,
                                           const uint8_t* places, double* sums) {
  sum_values(images, values, places, sums);
}
}  // namespace

template <>
void max_pool_rows(const TiledImages& images, int64_t first, int64_t last, const float* bias,
                   bool relu, const float* in, float* out, uint8_t* places) {
  max_pool_float(images, first, last, bias, relu, in, out, places);
}
template <>
void max_pool_rows(const TiledImages& images, int64_t first, int64_t last, const double* bias,
                   bool relu, const double* in, double* out, uint8_t* places) {
  max_pool_double(images, first, last, bias, relu, in, out, places);
}
template <>
void unpool_rows(const TiledImages& images, int64_t first, int64_t last, const float* values,
                 const uint8_t* places, float* image) {
  unpool_float(images, first, last, values, places, image);
}
template <>
void unpool_rows(const TiledImages& images, int64_t first, int64_t last, const double* values,
                 const uint8_t* places, double* image) {
  unpool_double(images, first, last, values, places, image);
}

template <class T>
void pick_rows(const TiledImages& images, int64_t first, int64_t last, const T* image,
               const uint8_t* places, T* values) {
  const int64_t channels = images.channels;
  for_each_row(images, first, last, [&](int64_t to, int64_t from) {
    for (int64_t x = 0; x < images.out_width(); ++x, to += channels) {
      const T* tile = image + from + x * images.tile_width * channels;
      for (int64_t c = 0; c < channels; ++c) {
        const uint8_t place = places[to + c];
        values[to + c] = place == kNoPlace ? T(0) : tile[offset_of(images, place) + c];
      }
    }
  });
}
template void pick_rows(const TiledImages&, int64_t, int64_t, const float*, const uint8_t*, float*);
template void pick_rows(const TiledImages&, int64_t, int64_t, const double*, const uint8_t*,
                        double*);

void sum_placed(const TiledImages& images, const float* values, const uint8_t* places,
                double* sums) {
  sum_placed_float(images, values, places, sums);
}
}  // namespace cohort::internal
