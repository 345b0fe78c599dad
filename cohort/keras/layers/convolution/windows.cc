#include "cohort/keras/layers/convolution/windows.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// "3", "(3, 5)".
std::string shown(const Sizes& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += str(text.empty() ? "" : ", ", size);
  return sizes.size() == 1 ? text : str("(", text, ")");
}

void check_positive(const Sizes& sizes, const WindowOptions& options, const char* name) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (*least >= 1 && *most <= kMostOfAxis) return;
  constexpr const char* kWho[] = {"it", "both numbers", "all numbers"};
  throw InvalidArgumentError(str(options.layer, ": ", name, " is ", shown(sizes), "; ",
                                 kWho[sizes.size() - 1], " must be at least 1, and at most ",
                                 kMostOfAxis));
}

int64_t largest(const Sizes& sizes) { return *std::max_element(sizes.begin(), sizes.end()); }

Padding parse_padding(const WindowOptions& options) {
  const std::string word = lower(options.padding);
  if (word == "valid") return Padding::kValid;
  if (word == "same") return Padding::kSame;
  if (word == "causal" && options.may_be_causal) return Padding::kCausal;
  throw InvalidArgumentError(str(options.layer, ": padding is ", quoted(options.padding),
                                 "; it must be 'valid' or 'same'",
                                 options.may_be_causal ? ", or 'causal'" : ""));
}

// Whether all windows are of one element, with gaps between them (plan::has_gaps says why that
// matters).
bool have_gaps(const Windows& windows) {
  return largest(windows.size) == 1 && largest(windows.strides) > 1;
}

}  // namespace

bool is_channels_first(std::string_view data_format, std::string_view layer) {
  const std::string word = lower(data_format);
  if (word == "channels_last" || word == "channels_first") return word == "channels_first";
  throw InvalidArgumentError(str(layer, ": data_format is ", quoted(data_format),
                                 "; it must be 'channels_last' or 'channels_first'"));
}

Windows checked_windows(const WindowOptions& options) {
  Windows windows{.size = options.size,
                  .strides = options.strides,
                  .dilation = options.dilation,
                  .padding = parse_padding(options),
                  .channels_first = is_channels_first(options.data_format, options.layer)};
  if (windows.dilation.empty()) windows.dilation.assign(windows.size.size(), 1);
  check_positive(windows.size, options, options.size_name);
  check_positive(windows.strides, options, "strides");
  check_positive(windows.dilation, options, "dilation_rate");
  if (largest(windows.strides) > 1 && largest(windows.dilation) > 1) {
    throw InvalidArgumentError(str(options.layer, ": strides is ", shown(windows.strides),
                                   " and dilation_rate ", shown(windows.dilation),
                                   "; only one of them may be above 1"));
  }
  return windows;
}

keras::layers::InputSpec input_spec_of(const Windows& windows) {
  keras::layers::InputSpec spec{.rank = windows.rank() + 2, .floating = true};
  if (windows.padding != Padding::kValid) return spec;
  if (windows.channels_first) spec.window.push_back(0);
  for (size_t axis = 0; axis < windows.size.size(); ++axis) {
    spec.window.push_back(windows.reach(axis));
  }
  return spec;
}

int64_t take_channels(const keras::Shape& input, const Windows& windows,
                      keras::layers::InputSpec& spec) {
  const int64_t channels = input[static_cast<size_t>(windows.channel_axis())];
  if (windows.channels_first) {
    spec.axes[1] = channels;
  } else {
    spec.last_dim = channels;
  }
  return channels;
}

Tensor to_channels_first(const Tensor& input, bool is_already) {
  if (is_already) return input;
  // libtorch views sequences as images of one row, whatever their layout.
  return input.dim() == 3 ? input.transpose(1, 2) : input.contiguous().movedim(-1, 1);
}

Tensor from_channels_first(const Tensor& output, bool stays) {
  return stays ? output : output.movedim(1, -1);
}

bool Border::is_empty() const {
  const auto is_zero = [](int64_t size) { return size == 0; };
  return std::all_of(before.begin(), before.end(), is_zero) &&
         std::all_of(after.begin(), after.end(), is_zero);
}

Border border_of(const Tensor& input, const Windows& windows) {
  Border border;
  for (size_t axis = 0; axis < windows.size.size(); ++axis) {
    const int64_t size = input.size(static_cast<int64_t>(axis) + 2);
    const int64_t stride = windows.strides[axis];
    const int64_t reach = windows.reach(axis);
    int64_t before = 0, after = 0;
    if (windows.padding == Padding::kCausal) {
      before = reach - 1;
    } else if (windows.padding == Padding::kSame) {
      const int64_t num_windows = (size + stride - 1) / stride;
      const int64_t total = std::max<int64_t>((num_windows - 1) * stride + reach - size, 0);
      before = total / 2;
      after = total - before;
    }
    border.before.push_back(before);
    border.after.push_back(after);
  }
  return border;
}

Tensor pad(const Tensor& input, const Border& border, double value) {
  if (border.is_empty()) return input;
  c10::SmallVector<int64_t, 6> sides;  // the last axis first
  for (size_t axis = border.before.size(); axis-- > 0;) {
    sides.push_back(border.before[axis]);
    sides.push_back(border.after[axis]);
  }
  return at::constant_pad_nd(input, sides, value);
}

Tensor convolve(const Tensor& input, const Tensor& kernel, const Tensor& bias,
                const Windows& windows, int64_t groups) {
  if (groups > 1 && input.size(0) == 0) {  // libtorch's kernels take no empty batch then
    keras::Shape row = input.sizes().vec();
    row[0] = 1;
    const Tensor batch = at::cat({input, at::zeros(row, input.options())});
    return convolve(batch, kernel, bias, windows, groups).narrow(0, 0, 0);
  }
  Tensor x = to_channels_first(input, windows.channels_first);
  Border border = border_of(x, windows);
  const c10::SmallVector<int64_t, 3> ones(windows.size.size(), 1);
  const c10::SmallVector<int64_t, 3> zeros(windows.size.size(), 0);
  if (!border.is_symmetric()) {
    x = pad(x, border, 0);
    border.before = zeros;
  }
  at::IntArrayRef strides = windows.strides;
  if (have_gaps(windows)) {
    for (int64_t axis = 0; axis < windows.rank(); ++axis) {
      x = x.slice(axis + 2, 0, x.size(axis + 2), strides[static_cast<size_t>(axis)]);
    }
    strides = ones;
  }
  const Tensor y = at::convolution(x, kernel, bias, strides, border.before, windows.dilation,
                                   /*transposed=*/false, /*output_padding=*/zeros, groups);
  return from_channels_first(y, windows.channels_first);
}

// libtorch's paths for empty batches, and on one thread for single small images, take no kernel
// with strides of its own; its other paths copy it, too.
Tensor filters_first(const Tensor& kernel) {
  const int64_t rank = kernel.dim() - 2;
  c10::SmallVector<int64_t, 5> order{rank + 1, rank};
  for (int64_t axis = 0; axis < rank; ++axis) order.push_back(axis);
  return kernel.permute(order).contiguous();
}

}  // namespace cohort::internal
