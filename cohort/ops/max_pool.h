// Max-pooling by windows that tile the image: one byte per output is all that the gradient needs to
// know.
#pragma once

#include <cstdint>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

struct Tile {
  int64_t height = 1;
  int64_t width = 1;
};

// Whether max_pool_tiles takes these: on the host, float32 or float64, a tile of 255 pixels or less
// that fits into the image.
bool can_max_pool_tiles(const Tensor& images, Tile tile);

// images: [batch, height, width, channels] -> [batch, height / tile.height, width / tile.width,
// channels], contiguous. Differentiable, any number of times. NaN wins. Uses the calling thread's
// intra-op threads.
Tensor max_pool_tiles(const Tensor& images, Tile tile);

}  // namespace cohort::internal
