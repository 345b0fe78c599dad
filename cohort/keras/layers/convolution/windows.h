// Windows that slide over sequences, images and volumes: their sizes, steps and borders, and where
// the channels of their inputs are. For sources of this room.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::internal {

enum class Padding {
  kValid,   // windows lie inside of the input
  kSame,    // zeros around it, so that there are ceil(size / stride) windows
  kCausal,  // zeros before it: also as many, but no window sees what comes later
};

// One number for each spatial axis.
using Sizes = std::vector<int64_t>;
inline Sizes sizes_of(int64_t size) { return {size}; }
inline Sizes sizes_of(const keras::layers::Size2D& size) { return {size.height, size.width}; }
inline Sizes sizes_of(const keras::layers::Size3D& size) {
  return {size.depth, size.height, size.width};
}

struct Windows {
  Sizes size;
  Sizes strides;
  Sizes dilation;
  Padding padding = Padding::kValid;
  bool channels_first = false;

  int64_t rank() const { return static_cast<int64_t>(size.size()); }
  int64_t channel_axis() const { return channels_first ? 1 : rank() + 1; }
  // How far a window reaches along an axis, with the gaps of its dilation.
  int64_t reach(size_t axis) const { return (size[axis] - 1) * dilation[axis] + 1; }
};

// The largest number of a layer's windows and margins: products of two fit an int64.
inline constexpr int64_t kMostOfAxis = std::numeric_limits<int32_t>::max();

// What a layer was given; it is named in errors.
struct WindowOptions {
  const char* layer;
  const char* size_name;
  Sizes size;
  Sizes strides;
  Sizes dilation = {};  // empty: none
  std::string_view padding;
  bool may_be_causal = false;
  std::string_view data_format;
};
// Errors: InvalidArgument (a number below 1; strides and dilation both above 1, which Keras
// refuses, so that its models have none; another padding or data_format).
Windows checked_windows(const WindowOptions& options);
// Errors: InvalidArgument (neither "channels_last" nor "channels_first").
bool is_channels_first(std::string_view data_format, std::string_view layer);

// What a layer of these windows expects: the rank, a floating dtype, and room for a window.
keras::layers::InputSpec input_spec_of(const Windows& windows);
// The channels of the input, which all further ones must have.
int64_t take_channels(const keras::Shape& input, const Windows& windows,
                      keras::layers::InputSpec& spec);

// [batch, spatial.., channels], or as data_format says, in libtorch's order, with the channels as
// dimension 1: a view over memory of Keras's order; and back.
Tensor to_channels_first(const Tensor& input, bool is_already);
Tensor from_channels_first(const Tensor& output, bool stays);

// What padding adds along each spatial axis: TensorFlow puts the odd element at the end.
struct Border {
  c10::SmallVector<int64_t, 3> before;
  c10::SmallVector<int64_t, 3> after;
  bool is_symmetric() const { return before == after; }
  bool is_empty() const;
};
// input: [batch, channels, spatial..].
Border border_of(const Tensor& input, const Windows& windows);
Tensor pad(const Tensor& input, const Border& border, double value);

// Shapes: input [batch, spatial.., channels], or as data_format says; kernel [filters, channels /
// groups, size..]; bias [filters] or undefined.
Tensor convolve(const Tensor& input, const Tensor& kernel, const Tensor& bias,
                const Windows& windows, int64_t groups);
// Keras's kernel [size.., channels, filters] as libtorch's [filters, channels, size..].
Tensor filters_first(const Tensor& kernel);

}  // namespace cohort::internal
