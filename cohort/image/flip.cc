#include "cohort/image/flip.h"

#include <ATen/ops/flip.h>
#include <ATen/ops/rot90.h>

#include "cohort/core/libtorch_error.h"
#include "cohort/image/image_shape.h"

namespace cohort::image {

using internal::libtorch_call;
using internal::image::shape_of_images;

Tensor flip_left_right(const Tensor& images) {
  shape_of_images("image::flip_left_right", images);
  return libtorch_call("image::flip_left_right", [&] { return at::flip(images, {-2}); });
}

Tensor flip_up_down(const Tensor& images) {
  shape_of_images("image::flip_up_down", images);
  return libtorch_call("image::flip_up_down", [&] { return at::flip(images, {-3}); });
}

Tensor rot90(const Tensor& images, int64_t k) {
  shape_of_images("image::rot90", images);
  return libtorch_call("image::rot90", [&] {
    return at::rot90(images, k % 4, {-3, -2}).contiguous();
  });
}

Tensor transpose(const Tensor& images) {
  shape_of_images("image::transpose", images);
  return libtorch_call("image::transpose", [&] { return images.transpose(-3, -2).contiguous(); });
}

}  // namespace cohort::image
