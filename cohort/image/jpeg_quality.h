// What storing an image as a JPEG file loses.
#pragma once

#include <cstdint>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::image {

// The image as it is after it was a JPEG file of that quality, 0 to 100. No gradient flows.
// Shape: [height, width, 1 or 3]. Errors: InvalidArgument (another shape or quality).
// Thread safety: any thread.
COHORT_API Tensor adjust_jpeg_quality(const Tensor& image, int64_t jpeg_quality);

}  // namespace cohort::image
