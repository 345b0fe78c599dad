// Windows that slide over images: their sizes, steps and borders.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::keras::layers {

// A height and a width; one number stands for both.
struct Size2D {
  Size2D(int64_t size) : Size2D(size, size) {}
  Size2D(int size) : Size2D(static_cast<int64_t>(size)) {}
  Size2D(int64_t height, int64_t width) : height(height), width(width) {}
  int64_t height;
  int64_t width;
};

}  // namespace cohort::keras::layers

namespace cohort::internal {

enum class Padding {
  kValid,  // windows lie inside of the image
  kSame,   // zeros around it, so that there are ceil(size / stride) windows
};
// "valid" or "same" in any case. `layer` is named in the error. Errors: InvalidArgument.
Padding parse_padding(std::string_view name, std::string_view layer);
// Errors: InvalidArgument (a size below 1; names the layer and the option).
void check_positive(const keras::layers::Size2D& size, std::string_view layer,
                    std::string_view option);

// Errors: InvalidArgument (both have gaps; Keras refuses that, and so its models have none).
void check_strides_or_dilation(const keras::layers::Size2D& strides,
                               const keras::layers::Size2D& dilation, std::string_view layer);

struct Window {
  keras::layers::Size2D size;
  keras::layers::Size2D strides;
  keras::layers::Size2D dilation = 1;
};

// How far a window reaches, with the gaps of its dilation.
keras::layers::Size2D reach(const Window& window);
// The least height and width of images for windows that lie inside of them; empty: any.
std::vector<int64_t> whole_window(const Window& window, Padding padding);

// Images [batch, height, width, channels] as libtorch's kernels want them: a view
// [batch, channels, height, width] over the same memory (their channels_last); and back.
Tensor to_channels_first(const Tensor& images);
Tensor to_channels_last(const Tensor& images);

// What "same" adds on each side of an image: TensorFlow puts the odd pixel below and to the right.
struct Border {
  int64_t top = 0;
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
  bool symmetric() const { return top == bottom && left == right; }
};
// images: [batch, channels, height, width].
Border same_border(const Tensor& images, const Window& window);
Tensor pad(const Tensor& images, const Border& border, double value);

}  // namespace cohort::internal
