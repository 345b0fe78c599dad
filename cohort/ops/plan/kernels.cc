#include "cohort/ops/plan/kernels.h"

#include <algorithm>

#include "cohort/core/cpu/vector_clones.h"

namespace cohort::internal::plan {

COHORT_VECTOR_CLONES void drop(const float* values, const float* kept, float share, int64_t count,
                               float* result) {
  for (int64_t i = 0; i < count; ++i) result[i] = values[i] * kept[i] / share;
}

namespace {

constexpr int64_t kBlock = 64;  // channels at once

// The pixels of a window that are there: from first to end.
struct Span {
  int64_t first = 0;
  int64_t end = 0;
};
Span span_of(int64_t window, int64_t stride, int64_t size, int64_t before, int64_t length) {
  const int64_t first = window * stride - before;
  return {std::max<int64_t>(first, 0), std::min(first + size, length)};
}

// Calls visit(window, rows, columns) for each window of an image, window after window.
template <class Visit>
void for_each_window(const Averaging& a, const Visit& visit) {
  int64_t window = 0;
  for (int64_t y = 0; y < a.rows.count; ++y) {
    const Span rows = span_of(y, a.strides[0], a.size[0], a.rows.before, a.height);
    for (int64_t x = 0; x < a.columns.count; ++x, ++window) {
      visit(window, rows, span_of(x, a.strides[1], a.size[1], a.columns.before, a.width));
    }
  }
}

}  // namespace

// Sums of rows are added to sums of windows: so large windows lose fewer digits.
void average(const Averaging& a, int64_t images, const float* from, float* to) {
  for (int64_t n = 0; n < images; ++n) {
    for_each_window(a, [&](int64_t window, const Span& rows, const Span& columns) {
      const auto pixels =
          static_cast<float>((rows.end - rows.first) * (columns.end - columns.first));
      for (int64_t first = 0; first < a.channels; first += kBlock) {
        const int64_t count = std::min(kBlock, a.channels - first);
        float* const sums = to + window * a.channels + first;
        std::fill_n(sums, count, 0.f);
        for (int64_t y = rows.first; y < rows.end; ++y) {
          float row_sums[kBlock] = {};
          for (int64_t x = columns.first; x < columns.end; ++x) {
            add(from + (y * a.width + x) * a.channels + first, count, row_sums);
          }
          add(row_sums, count, sums);
        }
        for (int64_t c = 0; c < count; ++c) sums[c] /= pixels;
      }
    });
    from += a.height * a.width * a.channels;
    to += a.rows.count * a.columns.count * a.channels;
  }
}

void average_gradient(const Averaging& a, int64_t images, const float* gradient, float* result) {
  for (int64_t n = 0; n < images; ++n) {
    std::fill_n(result, a.height * a.width * a.channels, 0.f);
    for_each_window(a, [&](int64_t window, const Span& rows, const Span& columns) {
      const auto pixels =
          static_cast<float>((rows.end - rows.first) * (columns.end - columns.first));
      for (int64_t first = 0; first < a.channels; first += kBlock) {
        const int64_t count = std::min(kBlock, a.channels - first);
        const float* const of_window = gradient + window * a.channels + first;
        float share[kBlock];
        for (int64_t c = 0; c < count; ++c) share[c] = of_window[c] / pixels;
        for (int64_t y = rows.first; y < rows.end; ++y) {
          for (int64_t x = columns.first; x < columns.end; ++x) {
            add(share, count, result + (y * a.width + x) * a.channels + first);
          }
        }
      }
    });
    gradient += a.rows.count * a.columns.count * a.channels;
    result += a.height * a.width * a.channels;
  }
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

COHORT_VECTOR_CLONES void scale(const float* values, float factor, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = values[i] * factor;
}

COHORT_VECTOR_CLONES void add_scaled(const float* values, float factor, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += values[i] * factor;
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
