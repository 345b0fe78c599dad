#include "cohort/image/random_image.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/image/color.h"
#include "cohort/image/flip.h"
#include "cohort/image/image_shape.h"
#include "cohort/ops/philox.h"
#include "cohort/ops/sampling/stateless_fill.h"

namespace cohort::image {
namespace {

using internal::describe;
using internal::Philox;
using internal::str;

// The words that TensorFlow's stateless operations draw from a seed.
class SeededWords {
 public:
  explicit SeededWords(const Seed& seed) : random_(internal::philox_of(seed)) {}

  uint32_t next() {
    if (used_ % 4 == 0) words_ = Philox::block(random_.seed(), random_.stream(), used_ / 4);
    return words_[used_++ % 4];
  }
  // In [0, 1).
  float next_float() { return std::bit_cast<float>((next() & 0x7fffffu) | 0x3f800000u) - 1.0f; }
  double between(double least, double most) {
    const auto low = static_cast<float>(least);
    return next_float() * (static_cast<float>(most) - low) + low;
  }

 private:
  const Philox random_;
  uint64_t used_ = 0;
  std::array<uint32_t, 4> words_{};
};

Seed drawn(const random::RandomGenerator& generator) {
  return {static_cast<int64_t>(generator.next_u64() >> 1), 0};
}

Tensor randomly_flipped(const Tensor& images, const Seed& seed, Tensor (*flip)(const Tensor&),
                        const char* operation) {
  const auto shape = internal::image::shape_of_images(operation, images);
  SeededWords words(seed);
  if (!shape.is_batch) return words.next_float() < 0.5f ? flip(images) : images;
  Tensor flips = at::empty({shape.batch, 1, 1, 1}, at::kBool);
  for (int64_t i = 0; i < shape.batch; ++i) flips.data_ptr<bool>()[i] = words.next_float() > 0.5f;
  return internal::libtorch_call(
      operation, [&] { return at::where(flips.to(images.device()), flip(images), images); });
}

void check_delta(const char* operation, double max_delta, double most) {
  if (max_delta >= 0 && max_delta <= most) return;
  throw InvalidArgumentError(
      most < std::numeric_limits<double>::infinity()
          ? str(operation, ": max_delta is ", max_delta, "; it must be from 0 to ", most)
          : str(operation, ": max_delta is ", max_delta, "; it must not be below 0"));
}

void check_factors(const char* operation, double lower, double upper) {
  if (lower >= 0 && upper > lower) return;
  throw InvalidArgumentError(str(operation, ": the range is from ", lower, " to ", upper,
                                 "; it must begin at 0 or above and not be empty"));
}

}  // namespace

Tensor stateless_random_flip_left_right(const Tensor& images, const Seed& seed) {
  return randomly_flipped(images, seed, flip_left_right, "image::random_flip_left_right");
}

Tensor stateless_random_flip_up_down(const Tensor& images, const Seed& seed) {
  return randomly_flipped(images, seed, flip_up_down, "image::random_flip_up_down");
}

Tensor stateless_random_crop(const Tensor& value, at::IntArrayRef size, const Seed& seed) {
  bool fits = value.defined() && static_cast<int64_t>(size.size()) == value.dim();
  for (size_t i = 0; fits && i < size.size(); ++i) {
    fits = size[i] >= 0 && size[i] <= value.size(static_cast<int64_t>(i));
  }
  if (!fits) {
    throw InvalidArgumentError(str("image::random_crop: a part ", internal::shape_str(size),
                                   " does not lie in ", describe(value)));
  }
  constexpr uint32_t kRange = std::numeric_limits<int32_t>::max();
  SeededWords words(seed);
  return internal::libtorch_call("image::random_crop", [&] {
    Tensor part = value;
    for (int64_t i = 0; i < value.dim(); ++i) {
      const int64_t places = value.size(i) - size[i] + 1;
      part = part.narrow(i, words.next() % kRange % places, size[i]);
    }
    return internal::image::copied(part);
  });
}

Tensor stateless_random_brightness(const Tensor& images, double max_delta, const Seed& seed) {
  check_delta("image::random_brightness", max_delta, std::numeric_limits<double>::infinity());
  return adjust_brightness(images, SeededWords(seed).between(-max_delta, max_delta));
}

Tensor stateless_random_contrast(const Tensor& images, double lower, double upper,
                                 const Seed& seed) {
  check_factors("image::random_contrast", lower, upper);
  return adjust_contrast(images, SeededWords(seed).between(lower, upper));
}

Tensor stateless_random_hue(const Tensor& images, double max_delta, const Seed& seed) {
  check_delta("image::random_hue", max_delta, 0.5);
  return adjust_hue(images, SeededWords(seed).between(-max_delta, max_delta));
}

Tensor stateless_random_saturation(const Tensor& images, double lower, double upper,
                                   const Seed& seed) {
  check_factors("image::random_saturation", lower, upper);
  return adjust_saturation(images, SeededWords(seed).between(lower, upper));
}

Tensor random_flip_left_right(const Tensor& images, const random::RandomGenerator& generator) {
  return stateless_random_flip_left_right(images, drawn(generator));
}

Tensor random_flip_up_down(const Tensor& images, const random::RandomGenerator& generator) {
  return stateless_random_flip_up_down(images, drawn(generator));
}

Tensor random_crop(const Tensor& value, at::IntArrayRef size,
                   const random::RandomGenerator& generator) {
  return stateless_random_crop(value, size, drawn(generator));
}

Tensor random_brightness(const Tensor& images, double max_delta,
                         const random::RandomGenerator& generator) {
  return stateless_random_brightness(images, max_delta, drawn(generator));
}

Tensor random_contrast(const Tensor& images, double lower, double upper,
                       const random::RandomGenerator& generator) {
  return stateless_random_contrast(images, lower, upper, drawn(generator));
}

Tensor random_hue(const Tensor& images, double max_delta,
                  const random::RandomGenerator& generator) {
  return stateless_random_hue(images, max_delta, drawn(generator));
}

Tensor random_saturation(const Tensor& images, double lower, double upper,
                         const random::RandomGenerator& generator) {
  return stateless_random_saturation(images, lower, upper, drawn(generator));
}

}  // namespace cohort::image
