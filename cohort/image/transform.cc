#include "cohort/image/transform.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include <map>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/structure/row_memory.h"
#include "cohort/image/image_shape.h"
#include "cohort/image/kernels/transform_kernels.h"

namespace cohort::internal::image {
namespace {

struct Transform {
  FillMode mode = FillMode::kReflect;
  bool nearest = false;
  double fill_value = 0;
  int64_t height = 0;
  int64_t width = 0;
};

template <class T>
void transform_plain(const Transform& by, const ImageShape& from, const Tensor& images,
                     const Tensor& transforms, const Tensor& out) {
  const float* const numbers = transforms.data_ptr<float>();
  const int64_t stride = transforms.size(0) == 1 ? 0 : 8;
  const T* const in = images.data_ptr<T>();
  T* const to = out.data_ptr<T>();
  const int64_t row_size = by.width * from.channels;
  intra_op_parallel_for(
      0, from.batch * by.height, rows_per_thread(row_size * 4), [&](int64_t begin, int64_t end) {
        while (begin < end) {
          const int64_t image = begin / by.height, first = begin % by.height;
          const int64_t last = std::min(by.height, first + end - begin);
          transform_rows<T>({.in = in + image * from.height * from.width * from.channels,
                             .height = from.height,
                             .width = from.width,
                             .channels = from.channels,
                             .out = to + image * by.height * row_size,
                             .out_width = by.width,
                             .transform = numbers + image * stride,
                             .mode = by.mode,
                             .nearest = by.nearest,
                             .fill_value = static_cast<float>(by.fill_value)},
                            first, last);
          begin += last - first;
        }
      });
}

// False for a dtype for which there are no loops.
bool transform_loops(const Transform& by, const ImageShape& from, const Tensor& images,
                     const Tensor& transforms, const Tensor& out) {
  switch (images.scalar_type()) {
    case at::kByte:
      transform_plain<uint8_t>(by, from, images, transforms, out);
      return true;
    case at::kInt:
      transform_plain<int32_t>(by, from, images, transforms, out);
      return true;
    case at::kLong:
      transform_plain<int64_t>(by, from, images, transforms, out);
      return true;
    case at::kFloat:
      transform_plain<float>(by, from, images, transforms, out);
      return true;
    case at::kDouble:
      transform_plain<double>(by, from, images, transforms, out);
      return true;
    default:
      return false;
  }
}

Tensor remainder_towards_zero(const Tensor& x, double by) { return x - (x / by).trunc() * by; }

// mapped_coordinate by libtorch's operations.
Tensor mapped(const Tensor& x, int64_t size, FillMode mode) {
  if (mode == FillMode::kConstant) return x;
  const auto length = static_cast<double>(size), last = length - 1;
  Tensor inside = x;
  if (size > 1 && mode == FillMode::kReflect) {
    const Tensor turned = remainder_towards_zero(x, 2 * length);
    const Tensor below = at::where(turned < -length, turned + 2 * length, -turned - 1);
    const Tensor above = at::where(turned >= length, 2 * length - turned - 1, turned);
    inside = at::where(x < 0, below, at::where(x > last, above, x));
  } else if (size > 1 && mode == FillMode::kWrap) {
    const Tensor turns = (x / last).trunc() * length;
    inside = at::where(x < 0, x - turns + length, at::where(x > last, x - turns, x));
  }
  return inside.clamp(0, last);
}

// The images' pixels at whole coordinates [batch, height, width], the fill value outside.
Tensor pixels_at(const Tensor& images, const Tensor& y, const Tensor& x, double fill_value) {
  const int64_t batch = images.size(0), height = images.size(1), width = images.size(2);
  const Tensor inside = (y >= 0).logical_and(y < height).logical_and(x >= 0).logical_and(x < width);
  const Tensor first =
      at::arange(batch, images.options().dtype(int64)).reshape({batch, 1, 1}) * (height * width);
  const Tensor place = at::where(inside, y * static_cast<double>(width) + x, 0.0).to(int64) + first;
  const Tensor pixels = images.reshape({batch * height * width, images.size(3)})
                            .index_select(0, place.reshape(-1))
                            .reshape({batch, y.size(1), y.size(2), images.size(3)});
  return at::where(inside.unsqueeze(-1), pixels, at::full_like(pixels, fill_value));
}

// Transforms by libtorch's operations: on any device, and with gradients.
Tensor transform_by_operations(const Transform& by, const Tensor& images,
                               const Tensor& transforms) {
  const Tensor t = transforms.to(images.device()).unsqueeze(-1).unsqueeze(-1);
  const auto options = t.options();
  const Tensor x = at::arange(by.width, options).reshape({1, 1, by.width});
  const Tensor y = at::arange(by.height, options).reshape({1, by.height, 1});
  const auto number = [&](int64_t i) { return t.select(1, i); };
  const Tensor projection = number(6) * x + number(7) * y + 1;
  const auto places = [&](int64_t i, int64_t size) {
    const Tensor straight = number(i) * x + number(i + 1) * y + number(i + 2);
    return mapped(straight / projection, size, by.mode)
        .expand({images.size(0), by.height, by.width});
  };
  const Tensor places_x = places(0, images.size(2)), places_y = places(3, images.size(1));
  const auto rounded = [](const Tensor& value) {
    return (value.abs() + 0.5).floor() * value.sign();
  };
  if (by.nearest) return pixels_at(images, rounded(places_y), rounded(places_x), by.fill_value);
  const Tensor top = places_y.floor(), left = places_x.floor();
  const auto corner = [&](int down, int right) {
    return pixels_at(images, top + down, left + right, by.fill_value).to(float32);
  };
  const Tensor right = (places_x - left).unsqueeze(-1), bottom = (places_y - top).unsqueeze(-1);
  const Tensor above = (1 - right) * corner(0, 0) + right * corner(0, 1);
  const Tensor below = (1 - right) * corner(1, 0) + right * corner(1, 1);
  return ((1 - bottom) * above + bottom * below).to(images.scalar_type());
}

Transform parse(const cohort::image::ProjectiveTransformOptions& options) {
  static const std::map<std::string, FillMode> modes = {{"reflect", FillMode::kReflect},
                                                        {"wrap", FillMode::kWrap},
                                                        {"constant", FillMode::kConstant},
                                                        {"nearest", FillMode::kNearest}};
  const auto mode = modes.find(options.fill_mode);
  if (mode == modes.end()) {
    throw InvalidArgumentError(str("image::projective_transform: there is no fill_mode '",
                                   options.fill_mode,
                                   "'; there are reflect, wrap, constant and nearest"));
  }
  if (options.interpolation != "bilinear" && options.interpolation != "nearest") {
    throw InvalidArgumentError(str("image::projective_transform: there is no interpolation '",
                                   options.interpolation, "'; there are bilinear and nearest"));
  }
  return {.mode = mode->second,
          .nearest = options.interpolation == "nearest",
          .fill_value = options.fill_value};
}

}  // namespace
}  // namespace cohort::internal::image

namespace cohort::image {

Tensor projective_transform(const Tensor& images, const Tensor& transforms,
                            const ProjectiveTransformOptions& options) {
  using namespace internal::image;
  const char* const kWhat = "image::projective_transform";
  Transform by = parse(options);
  const ImageShape from = shape_of_images(kWhat, images);
  if (!options.output_shape.empty()) check_size(kWhat, options.output_shape);
  by.height = options.output_shape.empty() ? from.height : options.output_shape[0];
  by.width = options.output_shape.empty() ? from.width : options.output_shape[1];
  const bool fits =
      transforms.defined() && (transforms.dim() == 1 || transforms.dim() == 2) &&
      transforms.size(-1) == 8 &&
      (transforms.dim() == 1 || transforms.size(0) == 1 || transforms.size(0) == from.batch);
  if (!fits || from.height < 1 || from.width < 1) {
    throw InvalidArgumentError(internal::str(
        kWhat, " takes images with pixels and transforms [8], [1, 8] or [batch, 8], but got ",
        internal::describe(images), " and ", internal::describe(transforms)));
  }
  return internal::libtorch_call(kWhat, [&] {
    const Tensor numbers = transforms.detach().to(float32).reshape({-1, 8}).contiguous();
    const Tensor four = images.reshape({from.batch, from.height, from.width, from.channels});
    if (!is_plain(images)) {
      return transform_by_operations(by, four, numbers).reshape(from.sizes(by.height, by.width));
    }
    const Tensor in = internal::contiguous_elements(images);
    const Tensor out = internal::empty_result(from.sizes(by.height, by.width), in.scalar_type());
    const Tensor on_host = numbers.cpu();
    if (out.numel() == 0 || transform_loops(by, from, in, on_host, out)) return out;
    const Tensor wide = at::empty(out.sizes(), float32);
    transform_loops(by, from, in.to(float32), on_host, wide);
    return wide.to(in.scalar_type());
  });
}

}  // namespace cohort::image
