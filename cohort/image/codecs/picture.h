// What all decoders of pictures share: shapes, and the limit on what a file may claim to hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohort::internal {

struct PictureShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  int64_t pixels() const { return height * width; }
  int64_t elements() const { return pixels() * channels; }
};

// The most numbers that TensorFlow decodes at once, and so do we.
inline constexpr int64_t kMostElements = int64_t{1} << 29;

// Throws unless a file of `bytes` bytes may hold the pixels that its header names. most_per_byte:
// how many pixels of this format a byte can stand for; max_pixels: the caller's own limit, instead,
// if it is not 0. Called before any memory is taken for pixels. Errors: InvalidArgument, which
// names the format and both numbers.
void check_pixels(const char* format, const PictureShape& shape, int64_t bytes,
                  double most_per_byte, int64_t max_pixels);

// Copies a library's message, as much of it as there is room for, with its final 0.
inline void copy_message(const char* text, char* out, size_t size) {
  std::strncpy(out, text, size - 1);
  out[size - 1] = '\0';
}

}  // namespace cohort::internal
