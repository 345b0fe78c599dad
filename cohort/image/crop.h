// Parts of images, and images with zeros around them.
//
//   Tensor middle = tf::image::central_crop(image, 0.5);
//   Tensor same_size = tf::image::resize_with_crop_or_pad(image, 224, 224);
//
// Images are [height, width, channels] or [batch, height, width, channels]; results have their
// dtype. Gradients flow through. Errors of all: InvalidArgument (neither an image nor a batch; a
// box that does not lie in the image or around it). Thread safety: any thread.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

COHORT_API Tensor crop_to_bounding_box(const Tensor& images, int64_t offset_height,
                                       int64_t offset_width, int64_t target_height,
                                       int64_t target_width);
// The images at that offset in zeros.
COHORT_API Tensor pad_to_bounding_box(const Tensor& images, int64_t offset_height,
                                      int64_t offset_width, int64_t target_height,
                                      int64_t target_width);
// Keeps the middle: a side that is too long is cropped, one that is too short padded.
COHORT_API Tensor resize_with_crop_or_pad(const Tensor& images, int64_t target_height,
                                          int64_t target_width);
// The middle of each side, `central_fraction` of it, in (0, 1].
COHORT_API Tensor central_crop(const Tensor& images, double central_fraction);

}  // namespace cohort::image
