#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/where.h>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/image/image_shape.h"
#include "cohort/image/resize.h"

namespace cohort::image {
namespace {

using internal::describe;
using internal::str;

constexpr const char* kCropAndResize = "image::crop_and_resize";

// Places [n, count] along a side of `size` pixels, of boxes that reach from `begin` to `end`.
Tensor places_along(const Tensor& begin, const Tensor& end, int64_t size, int64_t count) {
  const auto last = static_cast<double>(size - 1);
  if (count == 1) return ((begin + end) * 0.5 * last).unsqueeze(1);
  const Tensor step = (end - begin) * last / static_cast<double>(count - 1);
  return (begin * last).unsqueeze(1) + at::arange(count, begin.options()) * step.unsqueeze(1);
}

void check_boxes(const Tensor& images, const Tensor& boxes, const Tensor& box_indices) {
  const bool fits = images.defined() && images.dim() == 4 && images.size(1) > 0 &&
                    images.size(2) > 0 && boxes.defined() && boxes.dim() == 2 &&
                    boxes.size(1) == 4 && box_indices.defined() && box_indices.dim() == 1 &&
                    box_indices.size(0) == boxes.size(0) &&
                    at::isIntegralType(box_indices.scalar_type(), /*includeBool=*/false);
  if (!fits) {
    throw InvalidArgumentError(str(kCropAndResize,
                                   " takes images [batch, height, width, channels], boxes [n, 4] "
                                   "and integers [n], but got ",
                                   describe(images), ", ", describe(boxes), " and ",
                                   describe(box_indices)));
  }
  if (box_indices.numel() == 0) return;
  const auto least = box_indices.min().item<int64_t>(), most = box_indices.max().item<int64_t>();
  if (least >= 0 && most < images.size(0)) return;
  throw InvalidArgumentError(str(kCropAndResize, ": box_indices reach from ", least, " to ", most,
                                 " in a batch of ", images.size(0)));
}

}  // namespace

Tensor crop_and_resize(const Tensor& images, const Tensor& boxes, const Tensor& box_indices,
                       at::IntArrayRef crop_size, const CropAndResizeOptions& options) {
  check_boxes(images, boxes, box_indices);
  internal::image::check_size(kCropAndResize, crop_size);
  if (options.method != "bilinear" && options.method != "nearest") {
    throw InvalidArgumentError(str(kCropAndResize, ": there is no method '", options.method,
                                   "'; there are bilinear and nearest"));
  }
  return internal::libtorch_call(kCropAndResize, [&] {
    const int64_t height = images.size(1), width = images.size(2), channels = images.size(3);
    const Tensor corners = boxes.detach().to(images.device(), float32);
    const auto corner = [&](int64_t i) { return corners.select(1, i); };
    const Tensor y = places_along(corner(0), corner(2), height, crop_size[0]).unsqueeze(2);
    const Tensor x = places_along(corner(1), corner(3), width, crop_size[1]).unsqueeze(1);
    const Tensor inside =
        (y >= 0).logical_and(y <= height - 1).logical_and(x >= 0).logical_and(x <= width - 1);
    const Tensor pixels = images.to(float32).reshape({-1, channels});
    const Tensor first =
        box_indices.to(images.device(), int64).reshape({-1, 1, 1}) * (height * width);
    const auto pixel = [&](const Tensor& row, const Tensor& column) {
      const Tensor place = row.nan_to_num().clamp(0, height - 1).to(int64) * width +
                           column.nan_to_num().clamp(0, width - 1).to(int64) + first;
      return pixels.index_select(0, place.reshape(-1))
          .reshape({boxes.size(0), crop_size[0], crop_size[1], channels});
    };
    Tensor result;
    if (options.method == "nearest") {
      result = pixel((y + 0.5).floor(), (x + 0.5).floor());
    } else {
      const Tensor right = (x - x.floor()).unsqueeze(-1), below = (y - y.floor()).unsqueeze(-1);
      const Tensor left = pixel(y.floor(), x.floor()), low = pixel(y.ceil(), x.floor());
      const Tensor top = left + (pixel(y.floor(), x.ceil()) - left) * right;
      const Tensor bottom = low + (pixel(y.ceil(), x.ceil()) - low) * right;
      result = top + (bottom - top) * below;
    }
    return at::where(inside.unsqueeze(-1), result,
                     at::full_like(result, options.extrapolation_value));
  });
}

}  // namespace cohort::image
