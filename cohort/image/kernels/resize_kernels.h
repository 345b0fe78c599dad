// The loops of resizing, over images [height, width, channels] without gaps, on the calling thread.
// An output's bits do not depend on how the work is divided.
#pragma once

#include <cstdint>

#include "cohort/image/kernels/taps.h"

namespace cohort::internal::image {

// One image. T is uint8_t or float.
template <class T>
struct ResizedImage {
  const T* in = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  float* out = nullptr;  // [out_height, out_width, channels]
  int64_t out_width = 0;
};

// Each makes the output rows [first, last).

template <class T>
void resize_bilinear_rows(const ResizedImage<T>& image, const Lerp& rows, const Lerp& columns,
                          int64_t first, int64_t last);
// columns_first: sums within rows before sums of rows, as TensorFlow's area does; the result is
// multiplied by `factor`.
template <class T>
void resize_by_taps(const ResizedImage<T>& image, const Taps& rows, const Taps& columns,
                    bool columns_first, float factor, int64_t first, int64_t last);
// Pixels of `bytes` bytes.
void resize_nearest_rows(const char* in, int64_t width, int64_t bytes, const int64_t* rows,
                         const int64_t* columns, int64_t out_width, char* out, int64_t first,
                         int64_t last);

}  // namespace cohort::internal::image
