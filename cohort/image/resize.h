// Images of another size, as tf.image.resize makes them.
//
//   Tensor small = tf::image::resize(image, {224, 224});
//   Tensor sharp = tf::image::resize(images, {64, 64}, {.method = "lanczos3", .antialias = true});
//
// Images are [height, width, channels] or [batch, height, width, channels]. Gradients flow through.
// On CPUs the results are TensorFlow's to the bit, or to the last digit where a sum is of many
// pixels; on GPUs they are products of matrices. Thread safety: any thread.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

struct ResizeOptions {
  // "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian" or
  // "mitchellcubic".
  std::string method = "bilinear";
  // The result is as large as fits into `size`.
  bool preserve_aspect_ratio = false;
  // Blurs what is made smaller, so that no pixel is left out; "nearest" and "area" take no notice.
  bool antialias = false;
};

// Shape: the images', with the height and width of `size`. Dtype: float32; of "nearest" the
// images'. Errors: InvalidArgument (neither an image nor a batch; an empty image; a size that is
// not two positive numbers; an unknown method), Unimplemented (complex numbers).
COHORT_API Tensor resize(const Tensor& images, at::IntArrayRef size,
                         const ResizeOptions& options = {});

struct ResizeWithPadOptions {
  std::string method = "bilinear";
  bool antialias = false;
};
// The image is as large as fits without a change of its form, with zeros around it.
// Errors: as resize.
COHORT_API Tensor resize_with_pad(const Tensor& images, int64_t target_height, int64_t target_width,
                                  const ResizeWithPadOptions& options = {});

struct CropAndResizeOptions {
  std::string method = "bilinear";  // or "nearest"
  double extrapolation_value = 0;   // of what lies outside of an image
};
// Box i, boxes[i] = (y1, x1, y2, x2) where 0 and 1 are the middles of the first and last pixel, of
// image box_indices[i], resized to `crop_size`; y2 below y1 flips it.
// Shapes: images [batch, height, width, channels], boxes [n, 4], box_indices [n] (integers) ->
// [n, crop height, crop width, channels]. Dtype: float32. No gradient flows to the boxes.
// Errors: InvalidArgument (shapes that do not fit; an index outside of the batch; an unknown
// method).
COHORT_API Tensor crop_and_resize(const Tensor& images, const Tensor& boxes,
                                  const Tensor& box_indices, at::IntArrayRef crop_size,
                                  const CropAndResizeOptions& options = {});

}  // namespace cohort::image
