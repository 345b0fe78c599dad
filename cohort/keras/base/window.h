// Sizes, steps and gaps of windows that slide over images and volumes.
#pragma once

#include <cstdint>

namespace cohort::keras::layers {

// A height and a width; one number stands for both.
struct Size2D {
  Size2D(int64_t size) : Size2D(size, size) {}
  Size2D(int size) : Size2D(static_cast<int64_t>(size)) {}
  Size2D(int64_t height, int64_t width) : height(height), width(width) {}
  int64_t height;
  int64_t width;
};

// A depth, a height and a width; one number stands for all.
struct Size3D {
  Size3D(int64_t size) : Size3D(size, size, size) {}
  Size3D(int size) : Size3D(static_cast<int64_t>(size)) {}
  Size3D(int64_t depth, int64_t height, int64_t width)
      : depth(depth), height(height), width(width) {}
  int64_t depth;
  int64_t height;
  int64_t width;
};

}  // namespace cohort::keras::layers
