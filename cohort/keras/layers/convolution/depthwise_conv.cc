#include "cohort/keras/layers/convolution/depthwise_conv.h"

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/keras/layers/convolution/depthwise.h"

namespace cohort::keras::layers {
namespace {

using internal::Windows;

template <class Fields, class Size, class Options>
void depthwise_conv_fields(Fields& field, Size& kernel_size, Options& options) {
  conv_window_fields(field, kernel_size, options);
  depthwise_fields(field, options);
  bias_fields(field, options);
}

// Size: int64_t or Size2D.
template <class Size, class Options>
class DepthwiseConvImpl final : public Layer {
 public:
  DepthwiseConvImpl(const char* class_name, Size kernel_size, Options options)
      : Layer(class_name, {.name = options.name,
                           .dtype = options.dtype,
                           .activity_regularizer = options.activity_regularizer}),
        windows_(internal::depthwise_windows(class_name, kernel_size, options, false)),
        kernel_size_(kernel_size),
        options_(std::move(options)) {
    internal::check_depth_multiplier(options_.depth_multiplier, class_name);
    set_input_spec(internal::input_spec_of(windows_));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { depthwise_conv_fields(field, kernel_size_, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = internal::take_channels(input_shapes[0], windows_, input_spec());
    Shape kernel = windows_.size;
    kernel.insert(kernel.end(), {channels, options_.depth_multiplier});
    kernel_ = add_weight("depthwise_kernel", kernel,
                         {.initializer = options_.depthwise_initializer,
                          .regularizer = options_.depthwise_regularizer,
                          .constraint = options_.depthwise_constraint});
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", {channels * options_.depth_multiplier},
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    return internal::activate_outputs(
        options_.activation,
        internal::convolve_depthwise(in_compute_dtype(input), kernel_.value(),
                                     bias_ ? bias_.value() : Tensor(), windows_));
  }

 private:
  const Windows windows_;
  const Size kernel_size_;
  const Options options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

DepthwiseConv1D::DepthwiseConv1D(int64_t kernel_size, DepthwiseConv1DOptions options)
    : LayerHandle(std::make_shared<DepthwiseConvImpl<int64_t, DepthwiseConv1DOptions>>(
          "DepthwiseConv1D", kernel_size, std::move(options))) {}

DepthwiseConv2D::DepthwiseConv2D(Size2D kernel_size, DepthwiseConv2DOptions options)
    : LayerHandle(std::make_shared<DepthwiseConvImpl<Size2D, DepthwiseConv2DOptions>>(
          "DepthwiseConv2D", kernel_size, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Conv, class Size, class Options>
layers::LayerHandle read_depthwise_conv(FieldReader& field) {
  Size kernel_size = 1;
  Options options;
  field.common(options);
  layers::depthwise_conv_fields(field, kernel_size, options);
  return Conv(kernel_size, std::move(options));
}

}  // namespace

layers::LayerHandle read_depthwise_conv1d(FieldReader& field) {
  return read_depthwise_conv<layers::DepthwiseConv1D, int64_t, layers::DepthwiseConv1DOptions>(
      field);
}
layers::LayerHandle read_depthwise_conv2d(FieldReader& field) {
  return read_depthwise_conv<layers::DepthwiseConv2D, layers::Size2D,
                             layers::DepthwiseConv2DOptions>(field);
}

}  // namespace cohort::internal
