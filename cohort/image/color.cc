#include "cohort/image/color.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/row_memory.h"
#include "cohort/image/image_shape.h"
#include "cohort/image/kernels/color_kernels.h"

namespace cohort::image {
namespace {

using internal::describe;
using internal::dtype_name;
using internal::libtorch_call;
using internal::str;
using internal::image::is_plain;
using internal::image::rows_per_thread;

bool is_integer(DType dtype) { return at::isIntegralType(dtype, /*includeBool=*/false); }

int64_t largest(DType dtype) {
  switch (dtype) {
    case at::kByte:
      return std::numeric_limits<uint8_t>::max();
    case at::kChar:
      return std::numeric_limits<int8_t>::max();
    case at::kShort:
      return std::numeric_limits<int16_t>::max();
    case at::kInt:
      return std::numeric_limits<int32_t>::max();
    default:
      return std::numeric_limits<int64_t>::max();
  }
}

int64_t smallest(DType dtype) { return dtype == at::kByte ? 0 : -largest(dtype) - 1; }

void check_number(const char* operation, const Tensor& images) {
  const bool fits = images.defined() &&
                    (at::isFloatingType(images.scalar_type()) || is_integer(images.scalar_type()));
  if (fits) return;
  throw InvalidArgumentError(
      str(operation, " takes integers or floating numbers, but got ", describe(images)));
}

void check_channels(const char* operation, const Tensor& images, int64_t channels) {
  check_number(operation, images);
  if (images.dim() >= 1 && images.size(-1) == channels) return;
  throw InvalidArgumentError(
      str(operation, " takes images [.., ", channels, "], but got ", describe(images)));
}

// The numbers nearest to what a floating tensor holds, without those that `dtype` does not hold.
Tensor saturated(const Tensor& images, DType dtype) {
  if (is_integer(images.scalar_type())) {
    const int64_t least = std::max(smallest(dtype), smallest(images.scalar_type()));
    return images.clamp(least, std::min(largest(dtype), largest(images.scalar_type()))).to(dtype);
  }
  // The largest int32 and int64 are no numbers of float32: those beyond become the largest that is.
  const auto most = static_cast<double>(largest(dtype));
  double fits = most;
  if (images.scalar_type() == float32 && static_cast<float>(most) > most) {
    fits = std::nextafter(static_cast<float>(most), 0.0f);
  } else if (dtype == int64) {
    fits = std::nextafter(most, 0.0);
  }
  return images.clamp(static_cast<double>(smallest(dtype)), fits).to(dtype);
}

Tensor integers_to_integers(const Tensor& images, DType dtype, bool saturate) {
  // The range of n bits has 2^n numbers, one more than its largest.
  const auto numbers = [](DType type) { return static_cast<uint64_t>(largest(type)) + 1; };
  const uint64_t from = numbers(images.scalar_type()), to = numbers(dtype);
  if (from > to) {
    const Tensor scaled = images.div(static_cast<int64_t>(from / to), "floor");
    return saturate ? saturated(scaled, dtype) : scaled.to(dtype);
  }
  const Tensor wide = saturate ? saturated(images, dtype) : images.to(dtype);
  return wide * static_cast<int64_t>(to / from);
}

// In float32, or float16 as it is: what the adjustments compute in.
Tensor floating(const char* operation, const Tensor& images) {
  check_number(operation, images);
  if (images.scalar_type() == at::kHalf) return images;
  return convert_image_dtype(images, float32);
}

// Applies an operation on single numbers in floating arithmetic, and goes back to the dtype. Of
// bytes there are 256, whose results are looked up.
template <class Operation>
Tensor of_numbers(const char* name, const Tensor& images, const Operation& operation) {
  check_number(name, images);
  return libtorch_call(name, [&]() -> Tensor {
    const auto apply = [&](const Tensor& numbers) {
      return convert_image_dtype(operation(floating(name, numbers)), numbers.scalar_type(),
                                 /*saturate=*/true);
    };
    constexpr int64_t kMany = 2048;
    if (images.scalar_type() != uint8 || !is_plain(images) || images.numel() < kMany) {
      return apply(images);
    }
    const Tensor table = apply(at::arange(256).to(uint8));
    const Tensor in = internal::contiguous_elements(images);
    Tensor out = internal::empty_result(in.sizes(), uint8);
    const auto* const results = table.data_ptr<uint8_t>();
    const auto* const from = in.data_ptr<uint8_t>();
    auto* const to = out.data_ptr<uint8_t>();
    for (int64_t i = 0; i < in.numel(); ++i) to[i] = results[from[i]];
    return out;
  });
}

// Applies a loop to float32 pixels on the host; undefined where it may not.
template <class Loop>
Tensor of_pixels(const Tensor& images, const Loop& loop) {
  if (images.scalar_type() != float32 || !is_plain(images)) return {};
  const Tensor in = internal::contiguous_elements(images);
  Tensor out = internal::empty_result(in.sizes(), float32);
  const float* const from = in.data_ptr<float>();
  float* const to = out.data_ptr<float>();
  internal::intra_op_parallel_for(
      0, in.numel() / 3, rows_per_thread(12),
      [&](int64_t first, int64_t last) { loop(from + 3 * first, last - first, to + 3 * first); });
  return out;
}

Tensor hsv_by_operations(const Tensor& images) {
  const Tensor r = images.select(-1, 0), g = images.select(-1, 1), b = images.select(-1, 2);
  const Tensor v = images.amax(-1), range = v - images.amin(-1);
  const Tensor zero = range * 0, some = range > 0;
  const Tensor norm = 1 / (6 * at::where(some, range, zero + 1));
  const Tensor turned =
      at::where(r == v, norm * (g - b),
                at::where(g == v, norm * (b - r) + 2.0 / 6.0, norm * (r - g) + 4.0 / 6.0));
  const Tensor h = at::where(some, turned, zero);
  const Tensor s = at::where(v > 0, range / at::where(v > 0, v, zero + 1), zero);
  return at::stack({at::where(h < 0, h + 1, h), s, v}, -1);
}

Tensor rgb_by_operations(const Tensor& images) {
  const Tensor h = images.select(-1, 0) * 6, s = images.select(-1, 1), v = images.select(-1, 2);
  const auto channel = [&](const Tensor& share) { return (1 - s + s * share.clamp(0, 1)) * v; };
  return at::stack(
      {channel((h - 3).abs() - 1), channel(2 - (h - 2).abs()), channel(2 - (h - 4).abs())}, -1);
}

}  // namespace

Tensor convert_image_dtype(const Tensor& images, DType dtype, bool saturate) {
  check_number("image::convert_image_dtype", images);
  if (!at::isFloatingType(dtype) && !is_integer(dtype)) {
    throw InvalidArgumentError(str("image::convert_image_dtype: dtype is ", dtype_name(dtype),
                                   "; it must be of integers or floating numbers"));
  }
  const DType from = images.scalar_type();
  if (from == dtype) return images;
  return libtorch_call("image::convert_image_dtype", [&]() -> Tensor {
    if (is_integer(from) && is_integer(dtype)) return integers_to_integers(images, dtype, saturate);
    if (!is_integer(from) && !is_integer(dtype)) return images.to(dtype);
    if (is_integer(from)) return images.to(dtype) * (1.0 / static_cast<double>(largest(from)));
    const Tensor scaled = images * (static_cast<double>(largest(dtype)) + 0.5);
    return saturate ? saturated(scaled, dtype) : scaled.to(dtype);
  });
}

Tensor adjust_brightness(const Tensor& images, double delta) {
  return of_numbers("image::adjust_brightness", images,
                    [&](const Tensor& pixels) { return pixels + delta; });
}

Tensor adjust_contrast(const Tensor& images, double contrast_factor) {
  constexpr const char* kWhat = "image::adjust_contrast";
  check_number(kWhat, images);
  if (images.dim() < 3) {
    throw InvalidArgumentError(
        str(kWhat, " takes images [.., height, width, channels], but got ", describe(images)));
  }
  return libtorch_call(kWhat, [&] {
    const Tensor pixels = floating(kWhat, images);
    const Tensor mean = pixels.mean({-3, -2}, /*keepdim=*/true);
    const Tensor changed = (pixels - mean) * contrast_factor + mean;
    return convert_image_dtype(changed, images.scalar_type(), /*saturate=*/true);
  });
}

Tensor adjust_gamma(const Tensor& images, double gamma, double gain) {
  constexpr const char* kWhat = "image::adjust_gamma";
  if (!(gamma >= 0)) {
    throw InvalidArgumentError(str(kWhat, ": gamma is ", gamma, "; it must not be below 0"));
  }
  return of_numbers(kWhat, images,
                    [&](const Tensor& pixels) { return at::pow(pixels, gamma) * gain; });
}

Tensor adjust_hue(const Tensor& images, double delta) {
  constexpr const char* kWhat = "image::adjust_hue";
  check_channels(kWhat, images, 3);
  if (!(delta >= -1 && delta <= 1)) {
    throw InvalidArgumentError(str(kWhat, ": delta is ", delta, "; it must be in [-1, 1]"));
  }
  return libtorch_call(kWhat, [&] {
    const Tensor pixels = floating(kWhat, images);
    Tensor changed = of_pixels(pixels, [&](const float* in, int64_t count, float* out) {
      internal::image::adjust_hue_pixels(in, count, static_cast<float>(delta), out);
    });
    if (!changed.defined()) {
      const Tensor hsv = hsv_by_operations(pixels);
      const Tensor hue = (hsv.narrow(-1, 0, 1) + delta).remainder(1);
      changed =
          rgb_by_operations(at::stack({hue.squeeze(-1), hsv.select(-1, 1), hsv.select(-1, 2)}, -1));
    }
    return convert_image_dtype(changed, images.scalar_type());
  });
}

Tensor adjust_saturation(const Tensor& images, double saturation_factor) {
  constexpr const char* kWhat = "image::adjust_saturation";
  check_channels(kWhat, images, 3);
  return libtorch_call(kWhat, [&] {
    const Tensor pixels = floating(kWhat, images);
    Tensor changed = of_pixels(pixels, [&](const float* in, int64_t count, float* out) {
      internal::image::adjust_saturation_pixels(in, count, static_cast<float>(saturation_factor),
                                                out);
    });
    if (!changed.defined()) {
      const Tensor hsv = hsv_by_operations(pixels);
      const Tensor saturation = (hsv.select(-1, 1) * saturation_factor).clamp(0, 1);
      changed =
          rgb_by_operations(at::stack({hsv.select(-1, 0), saturation, hsv.select(-1, 2)}, -1));
    }
    return convert_image_dtype(changed, images.scalar_type());
  });
}

Tensor rgb_to_grayscale(const Tensor& images) {
  constexpr const char* kWhat = "image::rgb_to_grayscale";
  check_channels(kWhat, images, 3);
  return libtorch_call(kWhat, [&] {
    const Tensor pixels = convert_image_dtype(images, float32);
    const Tensor gray = pixels.narrow(-1, 0, 1) * 0.2989 + pixels.narrow(-1, 1, 1) * 0.5870 +
                        pixels.narrow(-1, 2, 1) * 0.1140;
    return convert_image_dtype(gray, images.scalar_type());
  });
}

Tensor grayscale_to_rgb(const Tensor& images) {
  check_channels("image::grayscale_to_rgb", images, 1);
  std::vector<int64_t> sizes = images.sizes().vec();
  sizes.back() = 3;
  return libtorch_call("image::grayscale_to_rgb",
                       [&] { return images.expand(sizes).contiguous(); });
}

Tensor rgb_to_hsv(const Tensor& images) {
  check_channels("image::rgb_to_hsv", images, 3);
  if (is_integer(images.scalar_type())) {
    throw InvalidArgumentError(
        str("image::rgb_to_hsv takes floating numbers, but got ", describe(images)));
  }
  return libtorch_call("image::rgb_to_hsv", [&] {
    const Tensor hsv = of_pixels(images, internal::image::rgb_to_hsv_pixels);
    return hsv.defined() ? hsv : hsv_by_operations(images);
  });
}

Tensor hsv_to_rgb(const Tensor& images) {
  check_channels("image::hsv_to_rgb", images, 3);
  if (is_integer(images.scalar_type())) {
    throw InvalidArgumentError(
        str("image::hsv_to_rgb takes floating numbers, but got ", describe(images)));
  }
  return libtorch_call("image::hsv_to_rgb", [&] {
    const Tensor rgb = of_pixels(images, internal::image::hsv_to_rgb_pixels);
    return rgb.defined() ? rgb : rgb_by_operations(images);
  });
}

Tensor per_image_standardization(const Tensor& images) {
  constexpr const char* kWhat = "image::per_image_standardization";
  check_number(kWhat, images);
  if (images.dim() < 3) {
    throw InvalidArgumentError(
        str(kWhat, " takes images [.., height, width, channels], but got ", describe(images)));
  }
  return libtorch_call(kWhat, [&] {
    const Tensor pixels = images.to(float32);
    const auto numbers = static_cast<double>(pixels.size(-1) * pixels.size(-2) * pixels.size(-3));
    const Tensor centered = pixels - pixels.mean({-1, -2, -3}, /*keepdim=*/true);
    const Tensor deviation = (centered * centered).mean({-1, -2, -3}, /*keepdim=*/true).sqrt();
    return centered / deviation.clamp_min(1 / std::sqrt(numbers));
  });
}

}  // namespace cohort::image
