#include "cohort/ops/kernels/single_channel_kernels.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {
namespace {

// Some vectors of filters, side by side.
template <int kVectors>
struct Filters {
  Floats at[kVectors];
};

// The two rows of the convolution that row `y` of the pooled pixels is made of.
template <int kSize, int kVectors>
COHORT_INLINE void convolve_rows(const SingleChannel& s, int64_t y, int64_t first,
                                 const float* image, const float* kernel, float* rows) {
  const int64_t row_size = 2 * s.pooled_width * s.filters;
  for (int64_t x = 0; x < s.pooled_width; ++x) {
    const float* const corner = image + 2 * y * s.width + 2 * x;
    Filters<kVectors> sums[4] = {};
#pragma GCC unroll 5
    for (int r = 0; r < kSize; ++r) {
#pragma GCC unroll 5
      for (int c = 0; c < kSize; ++c) {
        const float* const pixel = corner + r * s.width + c;
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          Floats weight;
          load(kernel + (r * kSize + c) * s.filters + first + v * kVector, weight);
          sums[0].at[v] += weight * pixel[0];
          sums[1].at[v] += weight * pixel[1];
          sums[2].at[v] += weight * pixel[s.width];
          sums[3].at[v] += weight * pixel[s.width + 1];
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      float* const to = rows + 2 * x * s.filters + first + v * kVector;
      store(sums[0].at[v], to);
      store(sums[1].at[v], to + s.filters);
      store(sums[2].at[v], to + row_size);
      store(sums[3].at[v], to + row_size + s.filters);
    }
  }
}

template <int kSize>
COHORT_INLINE void convolve_all_rows(const SingleChannel& s, int64_t y, const float* image,
                                     const float* kernel, float* rows) {
  int64_t first = 0;
  for (; first + 2 * kVector <= s.filters; first += 2 * kVector) {
    convolve_rows<kSize, 2>(s, y, first, image, kernel, rows);
  }
  if (first < s.filters) convolve_rows<kSize, 1>(s, y, first, image, kernel, rows);
}

template <int kSize>
COHORT_INLINE void add_gradients(const SingleChannel& s, int64_t first, const float* image,
                                 const float* gradient, const uint8_t* places,
                                 float* kernel_gradient, double* bias_gradient) {
  Floats taps[kSize * kSize] = {};
  Floats all{};
  for (int64_t y = 0; y < s.pooled_height; ++y) {
    for (int64_t x = 0; x < s.pooled_width; ++x) {
      const int64_t from = (y * s.pooled_width + x) * s.filters + first;
      Floats value;
      Bytes bytes;
      load(gradient + from, value);
      load(places + from, bytes);
      const Ints place = __builtin_convertvector(bytes, Ints);
      Floats at[4];
#pragma GCC unroll 4
      for (int p = 0; p < 4; ++p) {
        at[p] = place == p ? value : Floats{};
        all += at[p];
      }
      const float* const corner = image + 2 * y * s.width + 2 * x;
#pragma GCC unroll 5
      for (int r = 0; r < kSize; ++r) {
#pragma GCC unroll 5
        for (int c = 0; c < kSize; ++c) {
          const float* const pixel = corner + r * s.width + c;
          Floats& tap = taps[r * kSize + c];
          tap += at[0] * pixel[0];
          tap += at[1] * pixel[1];
          tap += at[2] * pixel[s.width];
          tap += at[3] * pixel[s.width + 1];
        }
      }
    }
  }
#pragma GCC unroll 25
  for (int t = 0; t < kSize * kSize; ++t) {
    float* const to = kernel_gradient + t * s.filters + first;
    Floats sum;
    load(to, sum);
    store(sum + taps[t], to);
  }
  if (bias_gradient == nullptr) return;
  for (int64_t f = 0; f < kVector; ++f) bias_gradient[first + f] += all[f];
}

}  // namespace

bool has_kernels(const SingleChannel& shape) {
  return shape.filters % kVector == 0 && (shape.size == 3 || shape.size == 5) &&
         has_wide_registers();
}

COHORT_VECTOR_CLONES static void convolve_two_rows(const SingleChannel& shape, int64_t y,
                                                   const float* image, const float* kernel,
                                                   float* rows) {
  if (shape.size == 3) {
    convolve_all_rows<3>(shape, y, image, kernel, rows);
  } else {
    convolve_all_rows<5>(shape, y, image, kernel, rows);
  }
}

int64_t scratch_size(const SingleChannel& shape) { return 4 * shape.pooled_width * shape.filters; }

void convolve_single_channel(const SingleChannel& shape, const float* image, const float* kernel,
                             const float* bias, float* scratch, float* out, uint8_t* places) {
  const TiledImages rows{1, 2, 2 * shape.pooled_width, shape.filters, 2, 2};
  const int64_t row_size = shape.pooled_width * shape.filters;
  for (int64_t y = 0; y < shape.pooled_height; ++y) {
    convolve_two_rows(shape, y, image, kernel, scratch);
    max_pool_rows<float>(rows, 0, 1, bias, shape.relu, scratch, out + y * row_size,
                         places + y * row_size);
  }
}

COHORT_VECTOR_CLONES void add_single_channel_gradients(const SingleChannel& shape,
                                                       const float* image, const float* gradient,
                                                       const uint8_t* places,
                                                       float* kernel_gradient,
                                                       double* bias_gradient) {
  for (int64_t first = 0; first < shape.filters; first += kVector) {
    if (shape.size == 3) {
      add_gradients<3>(shape, first, image, gradient, places, kernel_gradient, bias_gradient);
    } else {
      add_gradients<5>(shape, first, image, gradient, places, kernel_gradient, bias_gradient);
    }
  }
}

void convolve_single_channel_reference(const SingleChannel& s, const float* image,
                                       const float* kernel, const float* bias, float* out,
                                       uint8_t* places) {
  const auto product = [&](int64_t top, int64_t left, int64_t filter) {
    float sum = 0;
    for (int64_t r = 0; r < s.size; ++r) {
      for (int64_t c = 0; c < s.size; ++c) {
        sum +=
            image[(top + r) * s.width + left + c] * kernel[(r * s.size + c) * s.filters + filter];
      }
    }
    return sum;
  };
  for (int64_t i = 0; i < s.pooled_height * s.pooled_width * s.filters; ++i) {
    const int64_t filter = i % s.filters;
    const int64_t y = i / s.filters / s.pooled_width * 2;
    const int64_t x = i / s.filters % s.pooled_width * 2;
    float best = product(y, x, filter);
    uint8_t place = 0;
    for (const int p : {1, 2, 3}) {
      const float value = product(y + p / 2, x + p % 2, filter);
      if (!(value > best || value != value)) continue;
      best = value;
      place = static_cast<uint8_t>(p);
    }
    if (bias != nullptr) best += bias[filter];
    const bool cut = s.relu && best <= 0;
    out[i] = cut ? 0 : best;
    places[i] = cut ? static_cast<uint8_t>(kNoPlace) : place;
  }
}

void add_single_channel_gradients_reference(const SingleChannel& s, const float* image,
                                            const float* gradient, const uint8_t* places,
                                            float* kernel_gradient, double* bias_gradient) {
  for (int64_t i = 0; i < s.pooled_height * s.pooled_width * s.filters; ++i) {
    if (places[i] == kNoPlace) continue;
    const int64_t filter = i % s.filters;
    const int64_t y = i / s.filters / s.pooled_width * 2 + places[i] / 2;
    const int64_t x = i / s.filters % s.pooled_width * 2 + places[i] % 2;
    for (int64_t r = 0; r < s.size; ++r) {
      for (int64_t c = 0; c < s.size; ++c) {
        kernel_gradient[(r * s.size + c) * s.filters + filter] +=
            gradient[i] * image[(y + r) * s.width + x + c];
      }
    }
    if (bias_gradient != nullptr) bias_gradient[filter] += gradient[i];
  }
}

}  // namespace cohort::internal::plan
