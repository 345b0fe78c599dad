#include "cohort/ops/kernels/pooled_gradient_kernels.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {
namespace {

// The distance of each place's window in the image from that of the tile's first place.
struct Offsets {
  explicit Offsets(const PooledConvolution& s) {
    for (int64_t y = 0; y < s.tile_height; ++y) {
      for (int64_t x = 0; x < s.tile_width; ++x) {
        of[y * s.tile_width + x] = (y * s.width + x) * s.channels;
      }
    }
  }
  int64_t of[kNoPlace + 1] = {};
};

// The pixels of a filter that have a gradient, out of some of its pixels.
struct Pixels {
  static constexpr int64_t kMost = 256;
  int64_t offset[kMost];  // of the window's first element in the image
  float gradient[kMost];
  int64_t count = 0;

  // Looks at kMost pixels from `first` on, or as many as there are.
  COHORT_INLINE void collect(const PooledConvolution& s, const Offsets& offsets, int64_t first,
                             int64_t filter, const float* gradients, const uint8_t* places) {
    const int64_t last = std::min(first + kMost, s.pooled_height * s.pooled_width);
    const int64_t tile = s.tile_width * s.channels;
    const int64_t row = s.tile_height * s.width * s.channels;
    int64_t left = s.pooled_width - first % s.pooled_width;  // in this row of tiles
    int64_t at = first / s.pooled_width * row + first % s.pooled_width * tile;
    count = 0;
    for (int64_t from = first * s.filters + filter; from < last * s.filters; from += s.filters) {
      const uint8_t place = places[from];
      offset[count] = at + offsets.of[place];
      gradient[count] = gradients[from];
      // No branch here: half of them have none, in no order.
      count += static_cast<int64_t>(place != kNoPlace) & static_cast<int64_t>(gradients[from] != 0);
      at += tile;
      if (--left == 0) {
        left = s.pooled_width;
        at += row - s.pooled_width * tile;
      }
    }
  }
};

// Calls body(pixels, filter) for all of each filter's pixels, some at a time.
template <class Body>
COHORT_INLINE void for_pixels(const PooledConvolution& s, const float* gradients,
                              const uint8_t* places, const Body& body) {
  const Offsets offsets(s);
  Pixels pixels;
  for (int64_t filter = 0; filter < s.filters; ++filter) {
    for (int64_t first = 0; first < s.pooled_height * s.pooled_width; first += Pixels::kMost) {
      pixels.collect(s, offsets, first, filter, gradients, places);
      body(pixels, filter);
    }
  }
}

// kVectors vectors of channels of each tap of a 3x3 window. kChannels: those of the image where
// that is known when this is compiled, which spares half of the instructions; else 0.
template <int kVectors, int kChannels>
struct Taps {
  Floats at[9 * kVectors];

  // row: how far the next row of the window is.
  template <class T, class Body>
  COHORT_INLINE void for_each(T* first, int64_t row, int64_t channels, const Body& body) {
    const int64_t column = kChannels > 0 ? kChannels : channels;
#pragma GCC unroll 3
    for (int r = 0; r < 3; ++r) {
      T* const pixel = first + r * row;
#pragma GCC unroll 3
      for (int c = 0; c < 3; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          body(at[(r * 3 + c) * kVectors + v], pixel + c * column + v * kVector);
        }
      }
    }
  }
};

template <int kVectors, int kChannels>
COHORT_INLINE void add_kernel_gradient(const PooledConvolution& s, const Pixels& pixels,
                                       const float* image, float* kernel_gradient) {
  const int64_t row = s.width * s.channels;
  Taps<kVectors, kChannels> taps;
  taps.for_each(kernel_gradient, 3 * s.channels, s.channels,
                [](Floats& tap, const float* from) { load(from, tap); });
  for (int64_t i = 0; i < pixels.count; ++i) {
    const float factor = pixels.gradient[i];
    taps.for_each(image + pixels.offset[i], row, s.channels, [&](Floats& tap, const float* from) {
      Floats pixel;
      load(from, pixel);
      tap += factor * pixel;
    });
  }
  taps.for_each(kernel_gradient, 3 * s.channels, s.channels,
                [](Floats& tap, float* element) { store(tap, element); });
}

template <int kVectors, int kChannels>
COHORT_INLINE void add_image_gradient(const PooledConvolution& s, const Pixels& pixels,
                                      const float* kernel, float* image_gradient) {
  const int64_t row = s.width * s.channels;
  Taps<kVectors, kChannels> taps;
  taps.for_each(kernel, 3 * s.channels, s.channels,
                [](Floats& tap, const float* from) { load(from, tap); });
  for (int64_t i = 0; i < pixels.count; ++i) {
    const float factor = pixels.gradient[i];
    taps.for_each(image_gradient + pixels.offset[i], row, s.channels,
                  [&](Floats& tap, float* element) {
                    Floats pixel;
                    load(element, pixel);
                    pixel += factor * tap;
                    store(pixel, element);
                  });
  }
}

// Calls body.template operator()<kVectors, kChannels>(first channel) for all channels.
template <class Body>
COHORT_INLINE void for_channels(int64_t channels, const Body& body) {
  if (channels == kVector) return body.template operator()<1, kVector>(0);
  if (channels == 2 * kVector) return body.template operator()<2, 2 * kVector>(0);
  int64_t channel = 0;
  for (; channel + 2 * kVector <= channels; channel += 2 * kVector) {
    if (channels == 4 * kVector) {
      body.template operator()<2, 4 * kVector>(channel);
    } else {
      body.template operator()<2, 0>(channel);
    }
  }
  if (channel < channels) body.template operator()<1, 0>(channel);
}

template <class Body>
void for_gradients(const PooledConvolution& s, const float* gradient, const uint8_t* places,
                   const Body& body) {
  for (int64_t i = 0; i < s.pooled_height * s.pooled_width * s.filters; ++i) {
    if (places[i] == kNoPlace) continue;
    const int64_t y = i / s.filters / s.pooled_width * s.tile_height + places[i] / s.tile_width;
    const int64_t x = i / s.filters % s.pooled_width * s.tile_width + places[i] % s.tile_width;
    for (int64_t tap = 0; tap < s.size * s.size; ++tap) {
      for (int64_t c = 0; c < s.channels; ++c) {
        body(gradient[i], ((i % s.filters) * s.size * s.size + tap) * s.channels + c,
             ((y + tap / s.size) * s.width + x + tap % s.size) * s.channels + c);
      }
    }
  }
}

}  // namespace

bool has_kernels(const PooledConvolution& shape) {
  return shape.size == 3 && shape.channels % kVector == 0 && has_wide_registers();
}

COHORT_VECTOR_CLONES void add_pooled_kernel_gradient(const PooledConvolution& shape,
                                                     const float* image, const float* gradient,
                                                     const uint8_t* places,
                                                     float* kernel_gradient) {
  for_pixels(shape, gradient, places, [&](const Pixels& pixels, int64_t filter) {
    float* const to = kernel_gradient + filter * 9 * shape.channels;
    for_channels(shape.channels, [&]<int kVectors, int kChannels>(int64_t channel) {
      add_kernel_gradient<kVectors, kChannels>(shape, pixels, image + channel, to + channel);
    });
  });
}

COHORT_VECTOR_CLONES void pooled_image_gradient(const PooledConvolution& shape, const float* kernel,
                                                const float* gradient, const uint8_t* places,
                                                float* image_gradient) {
  std::fill_n(image_gradient, shape.height * shape.width * shape.channels, 0.f);
  for_pixels(shape, gradient, places, [&](const Pixels& pixels, int64_t filter) {
    const float* const from = kernel + filter * 9 * shape.channels;
    for_channels(shape.channels, [&]<int kVectors, int kChannels>(int64_t channel) {
      add_image_gradient<kVectors, kChannels>(shape, pixels, from + channel,
                                              image_gradient + channel);
    });
  });
}

COHORT_VECTOR_CLONES void sum_transposed(std::span<const float* const> matrices, int64_t rows,
                                         int64_t columns, float* to) {
  const int64_t whole_rows = rows / kVector * kVector;
  const int64_t whole_columns = columns / kVector * kVector;
  for (int64_t row = 0; row < whole_rows; row += kVector) {
    for (int64_t column = 0; column < whole_columns; column += kVector) {
      Floats block[kVector] = {};
      for (const float* const matrix : matrices) {
        for (int64_t i = 0; i < kVector; ++i) {
          Floats part;
          load(matrix + (row + i) * columns + column, part);
          block[i] += part;
        }
      }
      transpose(block);
      for (int64_t i = 0; i < kVector; ++i) store(block[i], to + (column + i) * rows + row);
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = row < whole_rows ? whole_columns : 0; column < columns; ++column) {
      float sum = 0;
      for (const float* const matrix : matrices) sum += matrix[row * columns + column];
      to[column * rows + row] = sum;
    }
  }
}

void add_pooled_kernel_gradient_reference(const PooledConvolution& s, const float* image,
                                          const float* gradient, const uint8_t* places,
                                          float* kernel_gradient) {
  for_gradients(s, gradient, places, [&](float value, int64_t weight, int64_t pixel) {
    kernel_gradient[weight] += value * image[pixel];
  });
}

void pooled_image_gradient_reference(const PooledConvolution& s, const float* kernel,
                                     const float* gradient, const uint8_t* places,
                                     float* image_gradient) {
  std::fill_n(image_gradient, s.height * s.width * s.channels, 0.f);
  for_gradients(s, gradient, places, [&](float value, int64_t weight, int64_t pixel) {
    image_gradient[pixel] += value * kernel[weight];
  });
}

}  // namespace cohort::internal::plan
