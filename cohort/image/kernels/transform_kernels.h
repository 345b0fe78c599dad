// The loops of projective transforms, over images [height, width, channels] without gaps, on the
// calling thread.
#pragma once

#include <cstdint>

namespace cohort::internal::image {

enum class FillMode { kReflect, kWrap, kConstant, kNearest };

// T is uint8_t, int32_t, int64_t, float or double.
template <class T>
struct TransformedImage {
  const T* in = nullptr;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  T* out = nullptr;  // [.., out_width, channels]
  int64_t out_width = 0;
  const float* transform = nullptr;  // eight numbers
  FillMode mode = FillMode::kReflect;
  bool nearest = false;
  float fill_value = 0;
};

// Makes the output rows [first, last).
template <class T>
void transform_rows(const TransformedImage<T>& image, int64_t first, int64_t last);

// The coordinate at which one outside of [0, size - 1] is read; not a number for one that is
// nowhere.
float mapped_coordinate(float coordinate, int64_t size, FillMode mode);

}  // namespace cohort::internal::image
