// Images seen through a projective transform: turned, shifted, zoomed, sheared.
//
//   // Shifted to the right by 10 pixels, mirrored at the border.
//   Tensor shift = tf::constant({1, 0, -10, 0, 1, 0, 0, 0});
//   Tensor shifted = tf::image::projective_transform(images, shift);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

struct ProjectiveTransformOptions {
  // What is taken from outside of an image: its mirror image "reflect" (abcd becomes dcba abcd
  // dcba), its other end "wrap", its border "nearest", or `fill_value` "constant".
  std::string fill_mode = "reflect";
  double fill_value = 0;
  std::string interpolation = "bilinear";  // or "nearest"
  std::vector<int64_t> output_shape = {};  // height and width; empty: the images'
};

// Pixel (x, y) of a result is that of the image at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)
// with k = c0 x + c1 y + 1; a transform is [a0, a1, a2, b0, b1, b2, c0, c1]. What
// tf.raw_ops.ImageProjectiveTransformV3 gives, which Keras's random layers use. Gradients flow to
// the images.
// Shapes: images [height, width, channels] or [batch, height, width, channels]; transforms [8],
// [1, 8] (the same for all) or [batch, 8] -> the images', of another size. Dtype: the images'.
// Errors: InvalidArgument (shapes that do not fit; an unknown mode).
COHORT_API Tensor projective_transform(const Tensor& images, const Tensor& transforms,
                                       const ProjectiveTransformOptions& options = {});

}  // namespace cohort::image
