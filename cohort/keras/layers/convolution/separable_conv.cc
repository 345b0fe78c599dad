#include "cohort/keras/layers/convolution/separable_conv.h"

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/keras/layers/convolution/depthwise.h"

namespace cohort::keras::layers {
namespace {

using internal::str;
using internal::Windows;

template <class Fields, class Filters, class Size, class Options>
void separable_conv_fields(Fields& field, Filters& filters, Size& kernel_size, Options& options) {
  field("filters", filters);
  conv_window_fields(field, kernel_size, options);
  depthwise_fields(field, options);
  field("pointwise_initializer", options.pointwise_initializer);
  field("pointwise_regularizer", options.pointwise_regularizer);
  field("pointwise_constraint", options.pointwise_constraint);
  bias_fields(field, options);
  // Keras writes also those of the one kernel that other convolutions have.
  field.without_effect("kernel_initializer",
                       internal::field_json(initializers::Initializer("glorot_uniform")));
  field.without_effect("kernel_regularizer", nullptr);
  field.without_effect("kernel_constraint", nullptr);
}

// Windows of one element, which mix the channels.
Windows pointwise(const Windows& windows) {
  const internal::Sizes ones(windows.size.size(), 1);
  return {
      .size = ones, .strides = ones, .dilation = ones, .channels_first = windows.channels_first};
}

// Size: int64_t or Size2D.
template <class Size, class Options>
class SeparableConvImpl final : public Layer {
 public:
  SeparableConvImpl(const char* class_name, int64_t filters, Size kernel_size, Options options)
      : Layer(class_name, {.name = options.name,
                           .dtype = options.dtype,
                           .activity_regularizer = options.activity_regularizer}),
        windows_(internal::depthwise_windows(class_name, kernel_size, options,
                                             std::is_same_v<Size, int64_t>)),
        pointwise_(pointwise(windows_)),
        filters_(filters),
        kernel_size_(kernel_size),
        options_(std::move(options)) {
    if (filters < 1) {
      throw InvalidArgumentError(str(class_name, ": filters is ", filters, ", below 1"));
    }
    internal::check_depth_multiplier(options_.depth_multiplier, class_name);
    set_input_spec(internal::input_spec_of(windows_));
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      separable_conv_fields(field, filters_, kernel_size_, options_);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = internal::take_channels(input_shapes[0], windows_, input_spec());
    Shape depthwise = windows_.size;
    depthwise.insert(depthwise.end(), {channels, options_.depth_multiplier});
    depthwise_kernel_ = add_weight("depthwise_kernel", depthwise,
                                   {.initializer = options_.depthwise_initializer,
                                    .regularizer = options_.depthwise_regularizer,
                                    .constraint = options_.depthwise_constraint});
    Shape mixing = pointwise_.size;
    mixing.insert(mixing.end(), {channels * options_.depth_multiplier, filters_});
    pointwise_kernel_ = add_weight("pointwise_kernel", mixing,
                                   {.initializer = options_.pointwise_initializer,
                                    .regularizer = options_.pointwise_regularizer,
                                    .constraint = options_.pointwise_constraint});
    if (!options_.use_bias) return;
    bias_ = add_weight("bias", {filters_},
                       {.initializer = options_.bias_initializer,
                        .regularizer = options_.bias_regularizer,
                        .constraint = options_.bias_constraint});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor of_channels = internal::convolve_depthwise(
        in_compute_dtype(input), depthwise_kernel_.value(), Tensor(), windows_);
    return internal::activate_outputs(
        options_.activation,
        internal::convolve(of_channels, internal::filters_first(pointwise_kernel_.value()),
                           bias_ ? bias_.value() : Tensor(), pointwise_, /*groups=*/1));
  }

 private:
  const Windows windows_;
  const Windows pointwise_;
  const int64_t filters_;
  const Size kernel_size_;
  const Options options_;
  Variable depthwise_kernel_;
  Variable pointwise_kernel_;
  Variable bias_;
};

}  // namespace

SeparableConv1D::SeparableConv1D(int64_t filters, int64_t kernel_size,
                                 SeparableConv1DOptions options)
    : LayerHandle(std::make_shared<SeparableConvImpl<int64_t, SeparableConv1DOptions>>(
          "SeparableConv1D", filters, kernel_size, std::move(options))) {}

SeparableConv2D::SeparableConv2D(int64_t filters, Size2D kernel_size,
                                 SeparableConv2DOptions options)
    : LayerHandle(std::make_shared<SeparableConvImpl<Size2D, SeparableConv2DOptions>>(
          "SeparableConv2D", filters, kernel_size, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

namespace {

template <class Conv, class Size, class Options>
layers::LayerHandle read_separable_conv(FieldReader& field) {
  int64_t filters = 0;
  Size kernel_size = 1;
  Options options;
  field.common(options);
  layers::separable_conv_fields(field, filters, kernel_size, options);
  return Conv(filters, kernel_size, std::move(options));
}

}  // namespace

layers::LayerHandle read_separable_conv1d(FieldReader& field) {
  return read_separable_conv<layers::SeparableConv1D, int64_t, layers::SeparableConv1DOptions>(
      field);
}
layers::LayerHandle read_separable_conv2d(FieldReader& field) {
  return read_separable_conv<layers::SeparableConv2D, layers::Size2D,
                             layers::SeparableConv2DOptions>(field);
}

}  // namespace cohort::internal
