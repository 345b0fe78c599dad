#include "cohort/image/kernels/transform_kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cohort/core/cpu/vector_clones.h"

namespace cohort::internal::image {
namespace {

// Further away than this no coordinate is meant, nor does an int64 hold the number of turns.
constexpr float kFurthest = 1e15f;

float reflected(float x, int64_t size) {
  if (size <= 1) return 0;
  const int64_t period = 2 * size;
  const auto period_number = static_cast<float>(period), length = static_cast<float>(size);
  if (x < 0) {
    x = period_number * static_cast<float>(static_cast<int64_t>(-x / period_number)) + x;
    return x < -length ? x + period_number : -x - 1;
  }
  x -= period_number * static_cast<float>(static_cast<int64_t>(x / period_number));
  return x >= length ? period_number - x - 1 : x;
}

float wrapped(float x, int64_t size) {
  if (size <= 1) return 0;
  const auto length = static_cast<float>(size), last = static_cast<float>(size - 1);
  if (x < 0) return x + length * static_cast<float>(static_cast<int64_t>(-x / last) + 1);
  return x - length * static_cast<float>(static_cast<int64_t>(x / last));
}

// What is read at whole coordinates; null outside.
template <class T>
inline const T* pixel_at(const TransformedImage<T>& image, float y, float x) {
  if (!(y >= 0 && y < static_cast<float>(image.height) && x >= 0 &&
        x < static_cast<float>(image.width))) {
    return nullptr;
  }
  return image.in +
         (static_cast<int64_t>(y) * image.width + static_cast<int64_t>(x)) * image.channels;
}

template <class T>
inline void nearest_pixel(const TransformedImage<T>& image, float y, float x, T* out) {
  const T* in = pixel_at(image, std::round(y), std::round(x));
  for (int64_t c = 0; c < image.channels; ++c) {
    out[c] = in ? in[c] : static_cast<T>(image.fill_value);
  }
}

template <class T>
inline void bilinear_pixel(const TransformedImage<T>& image, float y, float x, T* out) {
  const float y_floor = std::floor(y), x_floor = std::floor(x);
  const float y_ceil = y_floor + 1, x_ceil = x_floor + 1;
  const T* corners[] = {pixel_at(image, y_floor, x_floor), pixel_at(image, y_floor, x_ceil),
                        pixel_at(image, y_ceil, x_floor), pixel_at(image, y_ceil, x_ceil)};
  const float left = x_ceil - x, right = x - x_floor, top = y_ceil - y, bottom = y - y_floor;
  // A whole number outside stands for itself, as T holds it.
  const auto fill = static_cast<float>(static_cast<T>(image.fill_value));
  const auto value = [&](int corner, int64_t c) {
    return corners[corner] ? static_cast<float>(corners[corner][c]) : fill;
  };
  for (int64_t c = 0; c < image.channels; ++c) {
    const float above = left * value(0, c) + right * value(1, c);
    const float below = left * value(2, c) + right * value(3, c);
    out[c] = static_cast<T>(top * above + bottom * below);
  }
}

// Computes where the pixels of a row lie in the image, before what is outside is mapped.
COHORT_VECTOR_CLONES void find_places(const float* t, float y, int64_t width, float* places_y,
                                      float* places_x) {
  for (int32_t i = 0; i < static_cast<int32_t>(width); ++i) {
    const auto x = static_cast<float>(i);
    const float projection = t[6] * x + t[7] * y + 1.0f;
    // Divided by 0 neither is a number that is compared below.
    places_x[i] = (t[0] * x + t[1] * y + t[2]) / projection;
    places_y[i] = (t[3] * x + t[4] * y + t[5]) / projection;
  }
}

}  // namespace

float mapped_coordinate(float coordinate, int64_t size, FillMode mode) {
  const auto last = static_cast<float>(size - 1);
  if (mode == FillMode::kConstant || (coordinate >= 0 && coordinate <= last)) return coordinate;
  if (!(std::abs(coordinate) < kFurthest)) return std::numeric_limits<float>::quiet_NaN();
  if (mode == FillMode::kReflect) coordinate = reflected(coordinate, size);
  if (mode == FillMode::kWrap) coordinate = wrapped(coordinate, size);
  return std::clamp(coordinate, 0.0f, last);
}

template <class T>
void transform_rows(const TransformedImage<T>& image, int64_t first, int64_t last) {
  std::vector<float> places(static_cast<size_t>(2 * image.out_width));
  float* const places_y = places.data();
  float* const places_x = places_y + image.out_width;
  for (int64_t row = first; row < last; ++row) {
    find_places(image.transform, static_cast<float>(row), image.out_width, places_y, places_x);
    T* out = image.out + row * image.out_width * image.channels;
    for (int64_t i = 0; i < image.out_width; ++i, out += image.channels) {
      const float x = mapped_coordinate(places_x[i], image.width, image.mode);
      const float y = mapped_coordinate(places_y[i], image.height, image.mode);
      if (!std::isfinite(x + y)) {
        std::fill_n(out, image.channels, static_cast<T>(image.fill_value));
      } else if (image.nearest) {
        nearest_pixel(image, y, x, out);
      } else {
        bilinear_pixel(image, y, x, out);
      }
    }
  }
}

template void transform_rows(const TransformedImage<uint8_t>&, int64_t, int64_t);
template void transform_rows(const TransformedImage<int32_t>&, int64_t, int64_t);
template void transform_rows(const TransformedImage<int64_t>&, int64_t, int64_t);
template void transform_rows(const TransformedImage<float>&, int64_t, int64_t);
template void transform_rows(const TransformedImage<double>&, int64_t, int64_t);

}  // namespace cohort::internal::image
