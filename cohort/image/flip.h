// Mirrored and turned images.
//
// Images are [height, width, channels] or [batch, height, width, channels]; results have their
// dtype. Gradients flow through. Errors of all: InvalidArgument (neither an image nor a batch).
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

COHORT_API Tensor flip_left_right(const Tensor& images);
COHORT_API Tensor flip_up_down(const Tensor& images);
// Turns images by k quarters of a circle, counter-clockwise.
COHORT_API Tensor rot90(const Tensor& images, int64_t k = 1);
// Rows become columns.
COHORT_API Tensor transpose(const Tensor& images);

}  // namespace cohort::image
