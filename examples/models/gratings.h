// Images of stripes in a few directions, of any width, phase and colour, under noise.
#pragma once

#include <cstdint>

#include "models/example.h"

namespace models {

struct GratingOptions {
  int64_t size = 16;
  int64_t directions = 8;
  float noise = 0.5F;
  uint64_t seed = 1;
};

// Inputs: float32 [rows, size, size, 3]; labels: int64 [rows], the direction.
Rows make_gratings(int64_t rows, const GratingOptions& options);

}  // namespace models
