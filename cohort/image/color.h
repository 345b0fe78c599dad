// Colors, brightness and ranges of images, as tf.image changes them.
//
//   Tensor pixels = tf::image::convert_image_dtype(image, tf::float32);   // 0 to 255 -> 0 to 1
//   Tensor warmer = tf::image::adjust_hue(pixels, 0.05);
//
// The last dimension holds the channels. Integers stand for 0 to their dtype's largest number,
// floating numbers for 0 to 1: what adjust_* gives has the images' dtype, computed in float32.
// Gradients flow through. Errors of all: InvalidArgument (not so many channels; a factor that is
// out of range; a dtype that is neither). Thread safety: any thread.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

// In another dtype and its range. What does not fit becomes the nearest number that does with
// `saturate`, else anything.
COHORT_API Tensor convert_image_dtype(const Tensor& images, DType dtype, bool saturate = false);

// Adds `delta`, of the range from 0 to 1.
COHORT_API Tensor adjust_brightness(const Tensor& images, double delta);
// (x - mean) * contrast_factor + mean, by each image's and channel's mean.
COHORT_API Tensor adjust_contrast(const Tensor& images, double contrast_factor);
// gain * x ^ gamma; gamma is not below 0.
COHORT_API Tensor adjust_gamma(const Tensor& images, double gamma = 1, double gain = 1);
// Images of RGB: turns the circle of hues by `delta`, in [-1, 1].
COHORT_API Tensor adjust_hue(const Tensor& images, double delta);
// Images of RGB: multiplies the saturation, up to 1.
COHORT_API Tensor adjust_saturation(const Tensor& images, double saturation_factor);

// Shapes: [.., 3] -> [.., 1].
COHORT_API Tensor rgb_to_grayscale(const Tensor& images);
// Shapes: [.., 1] -> [.., 3].
COHORT_API Tensor grayscale_to_rgb(const Tensor& images);
// Floating numbers from 0 to 1. Shapes: [.., 3] -> [.., 3].
COHORT_API Tensor rgb_to_hsv(const Tensor& images);
COHORT_API Tensor hsv_to_rgb(const Tensor& images);

// Each image less its mean and divided by its standard deviation, or by 1 / sqrt(its numbers) where
// that is more. Shapes: [.., height, width, channels] -> the same. Dtype: float32.
COHORT_API Tensor per_image_standardization(const Tensor& images);

}  // namespace cohort::image
