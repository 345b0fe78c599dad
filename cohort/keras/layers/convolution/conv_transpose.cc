// Transposed convolutions of sequences, images and volumes.
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/convolution.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/conv1d_transpose.h"
#include "cohort/keras/layers/convolution/conv2d_transpose.h"
#include "cohort/keras/layers/convolution/conv3d_transpose.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::keras::layers {
namespace {

using internal::Padding;
using internal::Sizes;
using internal::str;
using internal::Windows;

// Along one axis: windows, one for each element of the input, reach over `spread` elements, from
// which `before` are cut off in front, and at the end (where it is below 0) elements without any
// are added.
struct Cut {
  int64_t before;
  int64_t after;
};

Cut cut_of(int64_t size, const Windows& windows, size_t axis, const Sizes& output_padding) {
  const int64_t reach = windows.reach(axis);
  const int64_t stride = windows.strides[axis];
  const int64_t spread = (size - 1) * stride + reach;
  const bool is_same = windows.padding == Padding::kSame;
  int64_t wanted = size * stride + (is_same ? 0 : std::max<int64_t>(reach - stride, 0));
  if (!output_padding.empty()) {
    wanted = spread - (is_same ? 2 * (reach / 2) : 0) + output_padding[axis];
  }
  const int64_t before = std::max<int64_t>(spread - wanted, 0) / 2;
  return {before, spread - wanted - before};
}

template <class Options>
Sizes dilation_of(const Options& options) {
  if constexpr (requires { options.dilation_rate; }) {
    return internal::sizes_of(options.dilation_rate);
  } else {
    return {};
  }
}

std::string listed(const Sizes& sizes) {
  std::string text;
  for (const int64_t size : sizes) text += str(text.empty() ? "" : ", ", size);
  return sizes.size() == 1 ? text : str("(", text, ")");
}

// Size: int64_t, Size2D or Size3D.
template <class Size, class Options>
class ConvTransposeImpl final : public Layer {
 public:
  ConvTransposeImpl(const char* class_name, int64_t filters, Size kernel_size, Options options)
      : Layer(class_name, {.name = options.name,
                           .dtype = options.dtype,
                           .activity_regularizer = options.activity_regularizer}),
        windows_(internal::checked_windows({.layer = class_name,
                                            .size_name = "kernel_size",
                                            .size = internal::sizes_of(kernel_size),
                                            .strides = internal::sizes_of(options.strides),
                                            .dilation = dilation_of(options),
                                            .padding = options.padding,
                                            .data_format = options.data_format})),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(std::move(options)) {
    if (filters < 1) {
      throw InvalidArgumentError(str(class_name, ": filters is ", filters, ", below 1"));
    }
    if (options_.output_padding) {
      output_padding_ = internal::sizes_of(*options_.output_padding);
      check_output_padding(class_name);
    }
    set_input_spec({.rank = windows_.rank() + 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { conv_fields(field, filters_, kernel_size_, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = internal::take_channels(input_shapes[0], windows_, input_spec());
    Shape kernel = windows_.size;
    kernel.insert(kernel.end(), {filters_, channels});
    kernel_ = add_weight("kernel", kernel,
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", {filters_},
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    // libtorch 1.13 takes this convolution for another one where a CPU multiplies bfloat16.
    const auto usable = [](const Tensor& x) { return x.is_cpu() ? internal::widened(x) : x; };
    Tensor x =
        internal::to_channels_first(usable(in_compute_dtype(input)), windows_.channels_first);
    if (x.size(0) == 0) x = x.contiguous();
    const c10::SmallVector<int64_t, 3> zeros(windows_.size.size(), 0);
    const Tensor spread = at::convolution(
        x, internal::filters_first(usable(kernel_.value())), /*bias=*/Tensor(), windows_.strides,
        /*padding=*/zeros, windows_.dilation, /*transposed=*/true, /*output_padding=*/zeros,
        /*groups=*/1);
    const Tensor outputs = cut(spread, x).to(kernel_.value().scalar_type());
    return internal::activate_outputs(
        options_.activation,
        internal::from_channels_first(bias_ ? outputs + bias_along(outputs) : outputs,
                                      windows_.channels_first));
  }

 private:
  // Both [batch, channels, spatial..].
  Tensor cut(const Tensor& spread, const Tensor& input) const {
    c10::SmallVector<int64_t, 6> cuts;  // the last axis first
    for (size_t axis = windows_.size.size(); axis-- > 0;) {
      const Cut ends =
          cut_of(input.size(static_cast<int64_t>(axis) + 2), windows_, axis, output_padding_);
      cuts.push_back(-ends.before);
      cuts.push_back(-ends.after);
    }
    const bool whole = std::all_of(cuts.begin(), cuts.end(), [](int64_t n) { return n == 0; });
    return whole ? spread : at::constant_pad_nd(spread, cuts);
  }
  Tensor bias_along(const Tensor& outputs) const {
    c10::SmallVector<int64_t, 5> shape(static_cast<size_t>(outputs.dim()), 1);
    shape[1] = filters_;
    return bias_.value().view(shape);
  }

  void check_output_padding(const char* class_name) const {
    bool fits = true;
    for (size_t axis = 0; axis < output_padding_.size(); ++axis) {
      fits = fits && output_padding_[axis] >= 0 && output_padding_[axis] < windows_.strides[axis];
    }
    if (fits) return;
    throw InvalidArgumentError(str(class_name, ": output_padding is ", listed(output_padding_),
                                   "; it must be at least 0 and below the strides, ",
                                   listed(windows_.strides)));
  }

  const Windows windows_;
  const int64_t filters_;
  const Size kernel_size_;
  const Options options_;
  Sizes output_padding_;  // empty: none
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Conv1DTranspose::Conv1DTranspose(int64_t filters, int64_t kernel_size,
                                 Conv1DTransposeOptions options)
    : LayerHandle(std::make_shared<ConvTransposeImpl<int64_t, Conv1DTransposeOptions>>(
          "Conv1DTranspose", filters, kernel_size, std::move(options))) {}

Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2D kernel_size,
                                 Conv2DTransposeOptions options)
    : LayerHandle(std::make_shared<ConvTransposeImpl<Size2D, Conv2DTransposeOptions>>(
          "Conv2DTranspose", filters, kernel_size, std::move(options))) {}

Conv3DTranspose::Conv3DTranspose(int64_t filters, Size3D kernel_size,
                                 Conv3DTransposeOptions options)
    : LayerHandle(std::make_shared<ConvTransposeImpl<Size3D, Conv3DTransposeOptions>>(
          "Conv3DTranspose", filters, kernel_size, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Transpose, class Size, class Options>
layers::LayerHandle read_conv_transpose(FieldReader& field) {
  int64_t filters = 0;
  Size kernel_size = 1;
  Options options;
  field.common(options);
  layers::conv_fields(field, filters, kernel_size, options);
  return Transpose(filters, kernel_size, std::move(options));
}

}  // namespace

layers::LayerHandle read_conv1d_transpose(FieldReader& field) {
  return read_conv_transpose<layers::Conv1DTranspose, int64_t, layers::Conv1DTransposeOptions>(
      field);
}
layers::LayerHandle read_conv2d_transpose(FieldReader& field) {
  return read_conv_transpose<layers::Conv2DTranspose, layers::Size2D,
                             layers::Conv2DTransposeOptions>(field);
}
layers::LayerHandle read_conv3d_transpose(FieldReader& field) {
  return read_conv_transpose<layers::Conv3DTranspose, layers::Size3D,
                             layers::Conv3DTransposeOptions>(field);
}

}  // namespace cohort::internal
