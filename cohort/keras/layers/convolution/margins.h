// What is added to, or cut from, the ends of spatial axes.
#pragma once

#include <cstdint>

namespace cohort::keras::layers {

// At the beginning and the end of an axis; one number stands for both.
struct Margin {
  Margin(int64_t size) : Margin(size, size) {}
  Margin(int size) : Margin(static_cast<int64_t>(size)) {}
  Margin(int64_t before, int64_t after) : before(before), after(after) {}
  int64_t before;
  int64_t after;
};

// Margins of images: {1, 2} is 1 above and below, and 2 left and right; {{0, 1}, {2, 3}} names all
// four.
struct Margins2D {
  Margins2D(int64_t size) : Margins2D(size, size) {}
  Margins2D(int size) : Margins2D(static_cast<int64_t>(size)) {}
  Margins2D(const Margin& height, const Margin& width) : height(height), width(width) {}
  Margin height;
  Margin width;
};

// Margins of volumes.
struct Margins3D {
  Margins3D(int64_t size) : Margins3D(size, size, size) {}
  Margins3D(int size) : Margins3D(static_cast<int64_t>(size)) {}
  Margins3D(const Margin& depth, const Margin& height, const Margin& width)
      : depth(depth), height(height), width(width) {}
  Margin depth;
  Margin height;
  Margin width;
};

}  // namespace cohort::keras::layers
