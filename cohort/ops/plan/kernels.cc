#include "cohort/ops/plan/kernels.h"

#include <algorithm>

#include "cohort/core/vector_clones.h"

namespace cohort::internal::plan {

COHORT_VECTOR_CLONES void rectify(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = values[i] <= 0 ? 0.f : values[i];
}

COHORT_VECTOR_CLONES void rectify_gradient(const float* rectified, const float* gradient,
                                           float* result, int64_t count) {
  for (int64_t i = 0; i < count; ++i) result[i] = rectified[i] == 0 ? 0.f : gradient[i];
}

COHORT_VECTOR_CLONES void add_column_sums(const float* values, int64_t rows, int64_t channels,
                                          double* sums) {
  // Some rows in float, whose rounding is small, and their sums in double.
  constexpr int64_t kChannels = 64;
  constexpr int64_t kRows = 32;
  for (int64_t top = 0; top < rows; top += kRows) {
    const int64_t bottom = std::min(top + kRows, rows);
    for (int64_t first = 0; first < channels; first += kChannels) {
      const int64_t count = std::min(kChannels, channels - first);
      float partial[kChannels] = {};
      for (int64_t row = top; row < bottom; ++row) {
        const float* __restrict value = values + row * channels + first;
        for (int64_t c = 0; c < count; ++c) partial[c] += value[c];
      }
      for (int64_t c = 0; c < count; ++c) sums[first + c] += partial[c];
    }
  }
}

COHORT_VECTOR_CLONES void add(const float* values, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += values[i];
}

void narrow(const double* values, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
}

void crop(const Crop& crop, int64_t images, const float* from, float* to) {
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t y = 0; y < crop.kept_height; ++y) {
      const float* const row = from + (n * crop.height + y * crop.steps[0]) * crop.width;
      if (crop.steps[1] == 1) {
        to = std::copy_n(row, crop.kept_width, to);
        continue;
      }
      for (int64_t x = 0; x < crop.kept_width; x += crop.pixel) {
        to = std::copy_n(row + x * crop.steps[1], crop.pixel, to);
      }
    }
  }
}

void uncrop(const Crop& crop, int64_t images, const float* from, float* to) {
  if (crop.steps != Size{1, 1}) {
    std::fill_n(to, images * crop.height * crop.width, 0.f);
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t y = 0; y < crop.kept_height; ++y) {
        float* const row = to + (n * crop.height + y * crop.steps[0]) * crop.width;
        for (int64_t x = 0; x < crop.kept_width; x += crop.pixel, from += crop.pixel) {
          std::copy_n(from, crop.pixel, row + x * crop.steps[1]);
        }
      }
    }
    return;
  }
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t y = 0; y < crop.kept_height; ++y, from += crop.kept_width) {
      to = std::copy_n(from, crop.kept_width, to);
      to = std::fill_n(to, crop.width - crop.kept_width, 0.f);
    }
    to = std::fill_n(to, (crop.height - crop.kept_height) * crop.width, 0.f);
  }
}

}  // namespace cohort::internal::plan
