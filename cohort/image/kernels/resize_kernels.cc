#include "cohort/image/kernels/resize_kernels.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cohort/core/cpu/vector_clones.h"

// What the clones of a function for several processors share, they must hold themselves.
#define COHORT_INLINED inline __attribute__((always_inline))

namespace cohort::internal::image {
namespace {

using Four = float __attribute__((vector_size(16)));
using FourIntegers = int32_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(16)));

COHORT_INLINED Four load_four(const float* from) {
  Four value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
// Bytes become integers by zeros beside them, which is one instruction.
COHORT_INLINED Four load_four(const uint8_t* from) {
  Bytes bytes = {};
  std::memcpy(&bytes, from, 4);
  const Bytes wide = __builtin_shufflevector(bytes, Bytes{}, 0, 16, 16, 16, 1, 16, 16, 16, 2, 16,
                                             16, 16, 3, 16, 16, 16);
  return __builtin_convertvector(std::bit_cast<FourIntegers>(wide), Four);
}
COHORT_INLINED void store_four(const Four& value, float* to) {
  std::memcpy(to, &value, sizeof value);
}

// One row between columns. Pixels of three channels are read and written as four numbers where a
// fourth is there, which the next pixel overwrites.
template <class T>
COHORT_INLINED void lerp_row(const T* in, int64_t width, int64_t channels, const Lerp& columns,
                             int64_t out_width, float* out) {
  const int64_t* lower = columns.lower.data();
  const int64_t* upper = columns.upper.data();
  const float* lerp = columns.lerp.data();
  int64_t x = 0;
  if (channels == 3) {
    for (; x + 1 < out_width && upper[x] + 1 < width; ++x) {
      const Four a = load_four(in + lower[x] * 3), b = load_four(in + upper[x] * 3);
      store_four(a + (b - a) * lerp[x], out + x * 3);
    }
  }
  for (; x < out_width; ++x) {
    const T* a = in + lower[x] * channels;
    const T* b = in + upper[x] * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float left = static_cast<float>(a[c]), right = static_cast<float>(b[c]);
      out[x * channels + c] = left + (right - left) * lerp[x];
    }
  }
}

COHORT_INLINED void lerp_between(const float* top, const float* bottom, float lerp, int64_t size,
                                 float* out) {
  for (int64_t i = 0; i < size; ++i) out[i] = top[i] + (bottom[i] - top[i]) * lerp;
}

// Two rows of pixels of three channels between columns, and what lies between both: rows that no
// other row of the output needs are not kept. Returns how many pixels it made; the last ones, after
// which no fourth number lies, are left.
template <class T>
COHORT_INLINED int64_t lerp_two_rows(const T* top, const T* bottom, int64_t width,
                                     const Lerp& columns, int64_t out_width, float row_lerp,
                                     float* out) {
  const int64_t* lower = columns.lower.data();
  const int64_t* upper = columns.upper.data();
  const float* lerp = columns.lerp.data();
  int64_t x = 0;
  for (; x + 1 < out_width && upper[x] + 1 < width; ++x) {
    const int64_t left = lower[x] * 3, right = upper[x] * 3;
    const Four a = load_four(top + left), b = load_four(bottom + left);
    const Four above = a + (load_four(top + right) - a) * lerp[x];
    const Four below = b + (load_four(bottom + right) - b) * lerp[x];
    store_four(above + (below - above) * row_lerp, out + x * 3);
  }
  return x;
}

// The pixels of a row from `x` on.
template <class T>
COHORT_INLINED void lerp_rest(const T* top, const T* bottom, int64_t channels, const Lerp& columns,
                              int64_t x, int64_t out_width, float row_lerp, float* out) {
  for (; x < out_width; ++x) {
    const int64_t left = columns.lower[x] * channels, right = columns.upper[x] * channels;
    const float lerp = columns.lerp[x];
    for (int64_t c = 0; c < channels; ++c) {
      const auto a = static_cast<float>(top[left + c]), b = static_cast<float>(bottom[left + c]);
      const float above = a + (static_cast<float>(top[right + c]) - a) * lerp;
      const float below = b + (static_cast<float>(bottom[right + c]) - b) * lerp;
      out[x * channels + c] = above + (below - above) * row_lerp;
    }
  }
}

// Rows of the input as rows of the output's width: the two that were made last.
struct TwoRows {
  explicit TwoRows(int64_t size) : rows{std::vector<float>(size), std::vector<float>(size)} {}
  std::vector<float> rows[2];
  int64_t of[2] = {-1, -1};
  int oldest = 0;
};

template <class T>
COHORT_INLINED void bilinear_rows(const ResizedImage<T>& image, const Lerp& rows,
                                  const Lerp& columns, int64_t first, int64_t last) {
  const int64_t size = image.out_width * image.channels;
  const int64_t in_size = image.width * image.channels;
  const auto out_height = static_cast<int64_t>(rows.lerp.size());
  if (image.channels == 3 && image.height >= out_height) {
    for (int64_t y = first; y < last; ++y) {
      const T* top = image.in + rows.lower[y] * in_size;
      const T* bottom = image.in + rows.upper[y] * in_size;
      float* const out = image.out + y * size;
      const int64_t made =
          lerp_two_rows(top, bottom, image.width, columns, image.out_width, rows.lerp[y], out);
      lerp_rest(top, bottom, 3, columns, made, image.out_width, rows.lerp[y], out);
    }
    return;
  }
  TwoRows made(size);
  const auto row_of = [&](int64_t y) __attribute__((always_inline))->const float* {
    for (int i = 0; i < 2; ++i) {
      if (made.of[i] != y) continue;
      made.oldest = 1 - i;
      return made.rows[i].data();
    }
    const int i = made.oldest;
    lerp_row(image.in + y * in_size, image.width, image.channels, columns, image.out_width,
             made.rows[i].data());
    made.of[i] = y;
    made.oldest = 1 - i;
    return made.rows[i].data();
  };
  for (int64_t y = first; y < last; ++y) {
    const float* top = row_of(rows.lower[y]);
    const float* bottom = row_of(rows.upper[y]);
    lerp_between(top, bottom, rows.lerp[y], size, image.out + y * size);
  }
}

template <class T>
COHORT_INLINED void add_scaled(const T* in, float weight, int64_t size, float* out) {
  for (int64_t i = 0; i < size; ++i) out[i] += weight * static_cast<float>(in[i]);
}

// The weighted sums of a row's pixels.
template <class T>
COHORT_INLINED void sum_columns(const T* in, int64_t width, int64_t channels, const Taps& columns,
                                float* out) {
  for (int64_t x = 0; x < columns.size(); ++x) {
    const float* weights = columns.weights_of(x);
    const T* pixel = in + columns.first[x] * channels;
    float* const to = out + x * channels;
    const int64_t count = columns.count[x];
    if (channels == 3 && x + 1 < columns.size() && columns.first[x] + count < width) {
      Four sum = {};
      for (int64_t k = 0; k < count; ++k) sum += weights[k] * load_four(pixel + k * 3);
      store_four(sum, to);
      continue;
    }
    std::fill_n(to, channels, 0.0f);
    for (int64_t k = 0; k < count; ++k, pixel += channels) {
      for (int64_t c = 0; c < channels; ++c) to[c] += weights[k] * static_cast<float>(pixel[c]);
    }
  }
}

template <class T>
COHORT_INLINED void tap_rows(const ResizedImage<T>& image, const Taps& rows, const Taps& columns,
                             bool columns_first, float factor, int64_t first, int64_t last) {
  const int64_t in_size = image.width * image.channels;
  const int64_t out_size = image.out_width * image.channels;
  std::vector<float> row(columns_first ? out_size : in_size);
  for (int64_t y = first; y < last; ++y) {
    float* const out = image.out + y * out_size;
    const float* weights = rows.weights_of(y);
    const T* in = image.in + rows.first[y] * in_size;
    if (columns_first) {
      std::fill_n(out, out_size, 0.0f);
      for (int64_t k = 0; k < rows.count[y]; ++k) {
        sum_columns(in + k * in_size, image.width, image.channels, columns, row.data());
        add_scaled(row.data(), weights[k], out_size, out);
      }
      for (int64_t i = 0; i < out_size; ++i) out[i] *= factor;
    } else {
      std::fill(row.begin(), row.end(), 0.0f);
      for (int64_t k = 0; k < rows.count[y]; ++k) {
        add_scaled(in + k * in_size, weights[k], in_size, row.data());
      }
      sum_columns(row.data(), image.width, image.channels, columns, out);
    }
  }
}

}  // namespace

template <>
COHORT_VECTOR_CLONES void resize_bilinear_rows(const ResizedImage<float>& image, const Lerp& rows,
                                               const Lerp& columns, int64_t first, int64_t last) {
  bilinear_rows(image, rows, columns, first, last);
}
template <>
COHORT_VECTOR_CLONES void resize_bilinear_rows(const ResizedImage<uint8_t>& image, const Lerp& rows,
                                               const Lerp& columns, int64_t first, int64_t last) {
  bilinear_rows(image, rows, columns, first, last);
}
template <>
COHORT_VECTOR_CLONES void resize_by_taps(const ResizedImage<float>& image, const Taps& rows,
                                         const Taps& columns, bool columns_first, float factor,
                                         int64_t first, int64_t last) {
  tap_rows(image, rows, columns, columns_first, factor, first, last);
}
template <>
COHORT_VECTOR_CLONES void resize_by_taps(const ResizedImage<uint8_t>& image, const Taps& rows,
                                         const Taps& columns, bool columns_first, float factor,
                                         int64_t first, int64_t last) {
  tap_rows(image, rows, columns, columns_first, factor, first, last);
}

void resize_nearest_rows(const char* in, int64_t width, int64_t bytes, const int64_t* rows,
                         const int64_t* columns, int64_t out_width, char* out, int64_t first,
                         int64_t last) {
  const auto size = static_cast<size_t>(bytes);
  for (int64_t y = first; y < last; ++y) {
    const char* const row = in + rows[y] * width * bytes;
    char* to = out + y * out_width * bytes;
    if (y > first && rows[y] == rows[y - 1]) {
      std::memcpy(to, to - out_width * bytes, static_cast<size_t>(out_width) * size);
      continue;
    }
    for (int64_t x = 0; x < out_width; ++x, to += bytes) {
      std::memcpy(to, row + columns[x] * bytes, size);
    }
  }
}

}  // namespace cohort::internal::image
