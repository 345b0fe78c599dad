#include "cohort/ops/plan/pooled_gradient_kernels.h"

#include <algorithm>

#include "cohort/core/vector_clones.h"
#include "cohort/ops/max_pool_kernels.h"
#include "cohort/ops/plan/vectors.h"

namespace cohort::internal::plan {
namespace {

// Where the window of each place of a tile begins in the image, from the first place's.
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

// Those pixels of a filter that have a gradient, of some of its pixels.
struct Pixels {
  static constexpr int64_t kMost = 256;
  int64_t offset[kMost];  // of the window's first element in the image
  float gradient[kMost];
  int64_t count = 0;

  // Of kMost pixels from `first` on, or as many as there are.
  COHORT_INLINE void collect(const PooledConvolution& s, const Offsets& offsets, int64_t first,
                             int64_t filter, const float* gradients, const uint8_t* places) {
    const int64_t last = std::min(first + kMost, s.pooled_height * s.pooled_width);
    int64_t y = first / s.pooled_width, x = first % s.pooled_width;
    count = 0;
    for (int64_t i = first; i < last; ++i) {
      const int64_t from = i * s.filters + filter;
      const uint8_t place = places[from];
      offset[count] =
          (y * s.tile_height * s.width + x * s.tile_width) * s.channels + offsets.of[place];
      gradient[count] = gradients[from];
      // Without a branch: half of them have none, in no order.
      count += static_cast<int64_t>(place != kNoPlace) & static_cast<int64_t>(gradients[from] != 0);
      if (++x == s.pooled_width) {
        x = 0;
        ++y;
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

// Some vectors of channels of each tap.
template <int kSize, int kVectors>
struct Taps {
  Floats at[kSize * kSize * kVectors];

  // elements: those of the first tap; row, column: how far the next is.
  COHORT_INLINE void load_from(const float* elements, int64_t row, int64_t column) {
    for_each(elements, row, column, [](Floats& tap, const float* from) { load(from, tap); });
  }
  template <class T, class Body>
  COHORT_INLINE void for_each(T* elements, int64_t row, int64_t column, const Body& body) {
#pragma GCC unroll 3
    for (int r = 0; r < kSize; ++r) {
#pragma GCC unroll 3
      for (int c = 0; c < kSize; ++c) {
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          body(at[(r * kSize + c) * kVectors + v], elements + r * row + c * column + v * kVector);
        }
      }
    }
  }
};

template <int kSize, int kVectors>
COHORT_INLINE void add_kernel_gradient(const PooledConvolution& s, const Pixels& pixels,
                                       const float* image, float* kernel_gradient) {
  Taps<kSize, kVectors> taps;
  taps.load_from(kernel_gradient, kSize * s.channels, s.channels);
  for (int64_t i = 0; i < pixels.count; ++i) {
    const float factor = pixels.gradient[i];
    taps.for_each(image + pixels.offset[i], s.width * s.channels, s.channels,
                  [&](Floats& tap, const float* from) {
                    Floats pixel;
                    load(from, pixel);
                    tap += factor * pixel;
                  });
  }
  taps.for_each(kernel_gradient, kSize * s.channels, s.channels,
                [](Floats& tap, float* element) { store(tap, element); });
}

template <int kSize, int kVectors>
COHORT_INLINE void add_image_gradient(const PooledConvolution& s, const Pixels& pixels,
                                      const float* kernel, float* image_gradient) {
  Taps<kSize, kVectors> taps;
  taps.load_from(kernel, kSize * s.channels, s.channels);
  for (int64_t i = 0; i < pixels.count; ++i) {
    const float factor = pixels.gradient[i];
    taps.for_each(image_gradient + pixels.offset[i], s.width * s.channels, s.channels,
                  [&](Floats& tap, float* element) {
                    Floats pixel;
                    load(element, pixel);
                    pixel += factor * tap;
                    store(pixel, element);
                  });
  }
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
    int64_t channel = 0;
    for (; channel + 2 * kVector <= shape.channels; channel += 2 * kVector) {
      add_kernel_gradient<3, 2>(shape, pixels, image + channel, to + channel);
    }
    if (channel < shape.channels) {
      add_kernel_gradient<3, 1>(shape, pixels, image + channel, to + channel);
    }
  });
}

COHORT_VECTOR_CLONES void pooled_image_gradient(const PooledConvolution& shape, const float* kernel,
                                                const float* gradient, const uint8_t* places,
                                                float* image_gradient) {
  std::fill_n(image_gradient, shape.height * shape.width * shape.channels, 0.f);
  for_pixels(shape, gradient, places, [&](const Pixels& pixels, int64_t filter) {
    const float* const from = kernel + filter * 9 * shape.channels;
    int64_t channel = 0;
    for (; channel + 2 * kVector <= shape.channels; channel += 2 * kVector) {
      add_image_gradient<3, 2>(shape, pixels, from + channel, image_gradient + channel);
    }
    if (channel < shape.channels) {
      add_image_gradient<3, 1>(shape, pixels, from + channel, image_gradient + channel);
    }
  });
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
