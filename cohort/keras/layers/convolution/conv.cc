// Convolutions of sequences, images and volumes.
#include <array>
#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/convolution/conv1d.h"
#include "cohort/keras/layers/convolution/conv2d.h"
#include "cohort/keras/layers/convolution/conv3d.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/keras/layers/convolution/windows.h"

namespace cohort::keras::layers {
namespace {

using internal::str;
using internal::Windows;

// Size: int64_t, Size2D or Size3D.
template <class Size, class Options>
class ConvImpl : public Layer {
 public:
  ConvImpl(const char* class_name, int64_t filters, Size kernel_size, Options options)
      : Layer(class_name, {.name = options.name,
                           .dtype = options.dtype,
                           .activity_regularizer = options.activity_regularizer}),
        windows_(internal::checked_windows({.layer = class_name,
                                            .size_name = "kernel_size",
                                            .size = internal::sizes_of(kernel_size),
                                            .strides = internal::sizes_of(options.strides),
                                            .dilation = internal::sizes_of(options.dilation_rate),
                                            .padding = options.padding,
                                            .may_be_causal = std::is_same_v<Size, int64_t>,
                                            .data_format = options.data_format})),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(std::move(options)) {
    if (filters < 1) {
      throw InvalidArgumentError(str(class_name, ": filters is ", filters, ", below 1"));
    }
    if (options_.groups < 1 || filters % options_.groups != 0) {
      throw InvalidArgumentError(str(class_name, ": groups is ", options_.groups,
                                     "; it must be 1 or more, and divide the filters, ", filters));
    }
    set_input_spec(internal::input_spec_of(windows_));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { conv_fields(field, filters_, kernel_size_, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = internal::take_channels(input_shapes[0], windows_, input_spec());
    if (channels % options_.groups != 0) {
      throw InvalidArgumentError(
          str("layer '", name(), "' has ", options_.groups, " groups, which do not divide the ",
              channels, " channels of its input, ", internal::shape_str(input_shapes[0])));
    }
    Shape kernel = windows_.size;
    kernel.insert(kernel.end(), {channels / options_.groups, filters_});
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
    return internal::activate_outputs(
        options_.activation,
        internal::convolve(in_compute_dtype(input), internal::filters_first(kernel_.value()),
                           bias_ ? bias_.value() : Tensor(), windows_, options_.groups));
  }

  const Windows windows_;
  const int64_t filters_;
  const Size kernel_size_;
  const Options options_;
  Variable kernel_;
  Variable bias_;
};

class Conv2DImpl final : public ConvImpl<Size2D, Conv2DOptions>,
                         public internal::DescribesOperation {
 public:
  using ConvImpl::ConvImpl;

  internal::LayerOperation operation(bool) const override {
    if (windows_.channels_first) return {.why_not = "its channels come first"};
    if (options_.groups > 1) return {.why_not = "it has groups"};
    const auto pair = [](const internal::Sizes& sizes) {
      return std::array<int64_t, 2>{sizes[0], sizes[1]};
    };
    const internal::plan::Convolution convolution{
        .filters = filters_,
        .size = pair(windows_.size),
        .strides = pair(windows_.strides),
        .dilation = pair(windows_.dilation),
        .same = windows_.padding == internal::Padding::kSame,
        .bias = options_.use_bias};
    return {.operations = {convolution},
            .parameters = {&kernel_, &bias_},
            .activation = options_.activation};
  }
};

}  // namespace

Conv1D::Conv1D(int64_t filters, int64_t kernel_size, Conv1DOptions options)
    : LayerHandle(std::make_shared<ConvImpl<int64_t, Conv1DOptions>>("Conv1D", filters, kernel_size,
                                                                     std::move(options))) {}

Conv2D::Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options)
    : LayerHandle(
          std::make_shared<Conv2DImpl>("Conv2D", filters, kernel_size, std::move(options))) {}

Conv3D::Conv3D(int64_t filters, Size3D kernel_size, Conv3DOptions options)
    : LayerHandle(std::make_shared<ConvImpl<Size3D, Conv3DOptions>>("Conv3D", filters, kernel_size,
                                                                    std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Conv, class Size, class Options>
layers::LayerHandle read_conv(FieldReader& field) {
  int64_t filters = 0;
  Size kernel_size = 1;
  Options options;
  field.common(options);
  layers::conv_fields(field, filters, kernel_size, options);
  return Conv(filters, kernel_size, std::move(options));
}

}  // namespace

layers::LayerHandle read_conv1d(FieldReader& field) {
  return read_conv<layers::Conv1D, int64_t, layers::Conv1DOptions>(field);
}
layers::LayerHandle read_conv2d(FieldReader& field) {
  return read_conv<layers::Conv2D, layers::Size2D, layers::Conv2DOptions>(field);
}
layers::LayerHandle read_conv3d(FieldReader& field) {
  return read_conv<layers::Conv3D, layers::Size3D, layers::Conv3DOptions>(field);
}

}  // namespace cohort::internal
