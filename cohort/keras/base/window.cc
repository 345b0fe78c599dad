#include "cohort/keras/base/window.h"

#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

struct Sides {
  int64_t before;
  int64_t after;
};

Sides same_sides(int64_t size, int64_t window, int64_t stride, int64_t dilation) {
  const int64_t num_windows = (size + stride - 1) / stride;
  const int64_t reach = (window - 1) * dilation + 1;
  const int64_t total = std::max<int64_t>((num_windows - 1) * stride + reach - size, 0);
  return {total / 2, total - total / 2};
}

}  // namespace

Padding parse_padding(std::string_view name, std::string_view layer) {
  const std::string word = lower(name);
  if (word == "valid") return Padding::kValid;
  if (word == "same") return Padding::kSame;
  throw InvalidArgumentError(
      str(layer, ": padding is ", quoted(name), "; it must be 'valid' or 'same'"));
}

void check_positive(const keras::layers::Size2D& size, std::string_view layer,
                    std::string_view option) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // products of two fit an int64
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMost) {
    throw InvalidArgumentError(str(layer, ": ", option, " is (", size.height, ", ", size.width,
                                   "); both numbers must be at least 1, and at most ", kMost));
  }
}

void check_strides_or_dilation(const keras::layers::Size2D& strides,
                               const keras::layers::Size2D& dilation, std::string_view layer) {
  if (std::max(strides.height, strides.width) == 1 ||
      std::max(dilation.height, dilation.width) == 1) {
    return;
  }
  throw InvalidArgumentError(str(layer, ": strides is (", strides.height, ", ", strides.width,
                                 ") and dilation_rate (", dilation.height, ", ", dilation.width,
                                 "); only one of them may be above 1"));
}

keras::layers::Size2D reach(const Window& window) {
  return {(window.size.height - 1) * window.dilation.height + 1,
          (window.size.width - 1) * window.dilation.width + 1};
}

std::vector<int64_t> whole_window(const Window& window, Padding padding) {
  if (padding == Padding::kSame) return {};
  const keras::layers::Size2D least = reach(window);
  return {least.height, least.width};
}

Tensor to_channels_first(const Tensor& images) { return images.contiguous().permute({0, 3, 1, 2}); }

Tensor to_channels_last(const Tensor& images) { return images.permute({0, 2, 3, 1}); }

Border same_border(const Tensor& images, const Window& window) {
  const Sides rows =
      same_sides(images.size(2), window.size.height, window.strides.height, window.dilation.height);
  const Sides columns =
      same_sides(images.size(3), window.size.width, window.strides.width, window.dilation.width);
  return {rows.before, rows.after, columns.before, columns.after};
}

Tensor pad(const Tensor& images, const Border& border, double value) {
  return at::constant_pad_nd(images, {border.left, border.right, border.top, border.bottom}, value);
}

}  // namespace cohort::internal
