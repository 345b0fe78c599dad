#include "cohort/keras/layers/convolution/conv2d.h"

#include <ATen/ops/conv2d.h>

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/keras/layers/convolution/conv_fields.h"

namespace cohort::keras::layers {
namespace {

using internal::Border;
using internal::Padding;
using internal::str;
using internal::Window;

class Conv2DImpl final : public Layer, public internal::DescribesOperation {
 public:
  Conv2DImpl(int64_t filters, Size2D kernel_size, Conv2DOptions options)
      : Layer("Conv2D", {.name = options.name,
                         .dtype = options.dtype,
                         .activity_regularizer = options.activity_regularizer}),
        filters_(filters),
        window_{kernel_size, options.strides, options.dilation_rate},
        padding_(internal::parse_padding(options.padding, "Conv2D")),
        options_(std::move(options)) {
    if (filters < 1) throw InvalidArgumentError(str("Conv2D: filters is ", filters, ", below 1"));
    internal::check_positive(window_.size, "Conv2D", "kernel_size");
    internal::check_positive(window_.strides, "Conv2D", "strides");
    internal::check_positive(window_.dilation, "Conv2D", "dilation_rate");
    internal::check_strides_or_dilation(window_.strides, window_.dilation, "Conv2D");
    set_input_spec(
        {.rank = 4, .floating = true, .window = internal::whole_window(window_, padding_)});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { conv_fields(field, filters_, window_.size, options_); });
  }

  internal::LayerOperation operation(bool) const override {
    const internal::plan::Convolution convolution{
        .filters = filters_,
        .size = {window_.size.height, window_.size.width},
        .strides = {window_.strides.height, window_.strides.width},
        .dilation = {window_.dilation.height, window_.dilation.width},
        .same = padding_ == Padding::kSame,
        .bias = options_.use_bias};
    return {.operations = {convolution},
            .parameters = {&kernel_, &bias_},
            .activation = options_.activation};
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = input_shapes[0].back();
    input_spec().last_dim = channels;
    kernel_ = add_weight(
        "kernel", {window_.size.height, window_.size.width, channels, filters_},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    if (options_.use_bias) {
      bias_ = add_weight(
          "bias", {filters_},
          {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
    }
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    return internal::activate_outputs(options_.activation,
                                      convolve(input, bias_ ? bias_.value() : Tensor()));
  }

 private:
  Tensor convolve(const Tensor& input, const Tensor& bias) const {
    Tensor images = internal::to_channels_first(in_compute_dtype(input));
    Border border;
    if (padding_ == Padding::kSame) {
      border = internal::same_border(images, window_);
      if (!border.symmetric()) {
        images = internal::pad(images, border, 0);
        border = {};
      }
    }
    internal::plan::Size strides = {window_.strides.height, window_.strides.width};
    if (internal::plan::has_gaps({window_.size.height, window_.size.width}, strides)) {
      images = internal::plan::seen_pixels(images, strides);
      strides = {1, 1};
    }
    // libtorch's paths for empty batches, and on one thread for single small images, take no kernel
    // with strides of its own; its other paths copy it, too.
    const Tensor kernel = kernel_.value().permute({3, 2, 0, 1}).contiguous();
    const Tensor outputs = at::conv2d(images, kernel, bias, strides, {border.top, border.left},
                                      {window_.dilation.height, window_.dilation.width});
    return internal::to_channels_last(outputs);
  }

  int64_t filters_;
  Window window_;
  Padding padding_;
  Conv2DOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Conv2D::Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options)
    : LayerHandle(std::make_shared<Conv2DImpl>(filters, kernel_size, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_conv2d(FieldReader& field) {
  int64_t filters = 0;
  layers::Size2D kernel_size = 1;
  layers::Conv2DOptions options;
  field.common(options);
  layers::conv_fields(field, filters, kernel_size, options);
  return layers::Conv2D(filters, kernel_size, std::move(options));
}

}  // namespace cohort::internal
