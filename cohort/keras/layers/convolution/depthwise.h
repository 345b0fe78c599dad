// What depthwise and separable convolutions share. For sources of this room.
#pragma once

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::internal {

template <class Size, class Options>
Windows depthwise_windows(const char* layer, const Size& kernel_size, const Options& options,
                          bool may_be_causal) {
  return checked_windows({.layer = layer,
                          .size_name = "kernel_size",
                          .size = sizes_of(kernel_size),
                          .strides = sizes_of(options.strides),
                          .dilation = sizes_of(options.dilation_rate),
                          .padding = options.padding,
                          .may_be_causal = may_be_causal,
                          .data_format = options.data_format});
}

inline void check_depth_multiplier(int64_t multiplier, const char* layer) {
  constexpr int64_t kMost = int64_t{1} << 31;  // so that its products with channels fit an int64
  if (multiplier >= 1 && multiplier < kMost) return;
  throw InvalidArgumentError(str(layer, ": depth_multiplier is ", multiplier,
                                 "; it must be at least 1, and below ", kMost));
}

// kernel: Keras's, [size.., channels, multiplier]; bias [channels * multiplier] or undefined.
inline Tensor convolve_depthwise(const Tensor& input, const Tensor& kernel, const Tensor& bias,
                                 const Windows& windows) {
  const int64_t channels = kernel.size(-2);
  keras::Shape shape{channels * kernel.size(-1), 1};
  shape.insert(shape.end(), windows.size.begin(), windows.size.end());
  c10::SmallVector<int64_t, 4> order{kernel.dim() - 2, kernel.dim() - 1};
  for (int64_t axis = 0; axis < windows.rank(); ++axis) order.push_back(axis);
  return convolve(input, kernel.permute(order).reshape(shape), bias, windows, channels);
}

}  // namespace cohort::internal
