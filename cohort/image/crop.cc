#include "cohort/image/crop.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/image/image_shape.h"

namespace cohort::image {
namespace {

using internal::str;
using internal::image::check_size;
using internal::image::ImageShape;
using internal::image::shape_of_images;

// A copy: the part does not keep the whole image's memory.
Tensor part(const Tensor& images, int64_t top, int64_t left, int64_t height, int64_t width) {
  return internal::libtorch_call("image::crop_to_bounding_box", [&] {
    return internal::image::copied(images.narrow(-3, top, height).narrow(-2, left, width));
  });
}

// What would be read as a box: "height 3 from 2 on and width ...".
std::string box(int64_t top, int64_t left, int64_t height, int64_t width) {
  return str(height, " x ", width, " at (", top, ", ", left, ")");
}

}  // namespace

Tensor crop_to_bounding_box(const Tensor& images, int64_t offset_height, int64_t offset_width,
                            int64_t target_height, int64_t target_width) {
  const ImageShape from = shape_of_images("image::crop_to_bounding_box", images);
  check_size("image::crop_to_bounding_box", {target_height, target_width});
  if (offset_height < 0 || offset_width < 0 || target_height > from.height - offset_height ||
      target_width > from.width - offset_width) {
    throw InvalidArgumentError(str("image::crop_to_bounding_box: the box ",
                                   box(offset_height, offset_width, target_height, target_width),
                                   " does not lie in an image of ", from.height, " x ",
                                   from.width));
  }
  return part(images, offset_height, offset_width, target_height, target_width);
}

Tensor pad_to_bounding_box(const Tensor& images, int64_t offset_height, int64_t offset_width,
                           int64_t target_height, int64_t target_width) {
  const ImageShape from = shape_of_images("image::pad_to_bounding_box", images);
  if (offset_height < 0 || offset_width < 0 || from.height > target_height - offset_height ||
      from.width > target_width - offset_width) {
    throw InvalidArgumentError(str("image::pad_to_bounding_box: an image ",
                                   box(offset_height, offset_width, from.height, from.width),
                                   " does not fit into ", target_height, " x ", target_width));
  }
  return internal::libtorch_call("image::pad_to_bounding_box", [&] {
    return at::constant_pad_nd(images,
                               {0, 0, offset_width, target_width - offset_width - from.width,
                                offset_height, target_height - offset_height - from.height},
                               0);
  });
}

Tensor resize_with_crop_or_pad(const Tensor& images, int64_t target_height, int64_t target_width) {
  const ImageShape from = shape_of_images("image::resize_with_crop_or_pad", images);
  check_size("image::resize_with_crop_or_pad", {target_height, target_width});
  const auto half = [](int64_t difference) { return std::max<int64_t>(difference, 0) / 2; };
  const Tensor cropped = crop_to_bounding_box(
      images, half(from.height - target_height), half(from.width - target_width),
      std::min(target_height, from.height), std::min(target_width, from.width));
  return pad_to_bounding_box(cropped, half(target_height - from.height),
                             half(target_width - from.width), target_height, target_width);
}

Tensor central_crop(const Tensor& images, double central_fraction) {
  const ImageShape from = shape_of_images("image::central_crop", images);
  if (!(central_fraction > 0 && central_fraction <= 1)) {
    throw InvalidArgumentError(str("image::central_crop: central_fraction is ", central_fraction,
                                   "; it must be in (0, 1]"));
  }
  if (central_fraction == 1) return images;
  const auto before = [&](int64_t size) {
    const auto whole = static_cast<double>(size);
    return static_cast<int64_t>((whole - whole * central_fraction) / 2);
  };
  const int64_t top = before(from.height), left = before(from.width);
  return part(images, top, left, from.height - 2 * top, from.width - 2 * left);
}

}  // namespace cohort::image
