#include "cohort/keras/layers/conv2d_transpose.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv_transpose2d.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/keras/layers/conv_fields.h"
#include "cohort/keras/logits.h"
#include "cohort/keras/saving/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::Padding;
using internal::str;
using internal::Window;

template <class Fields, class Filters, class Size, class Options>
void conv2d_transpose_fields(Fields& field, Filters& filters, Size& kernel_size, Options& options) {
  conv_fields(field, filters, kernel_size, options);
  field.always("output_padding", nullptr);
}

// Along one axis: windows, one for each pixel of the input, reach over `spread` pixels, from which
// `before` are cut off in front, and at the end (where it is below 0) pixels without any are added.
struct Cut {
  int64_t before;
  int64_t after;
};

Cut cut_of(int64_t size, int64_t window, int64_t stride, int64_t dilation, Padding padding) {
  const int64_t reach = (window - 1) * dilation + 1;
  const int64_t spread = (size - 1) * stride + reach;
  const int64_t wanted = padding == Padding::kSame
                             ? size * stride
                             : size * stride + std::max<int64_t>(reach - stride, 0);
  const int64_t before = std::max<int64_t>(spread - wanted, 0) / 2;
  return {before, spread - wanted - before};
}

class Conv2DTransposeImpl final : public Layer {
 public:
  Conv2DTransposeImpl(int64_t filters, Size2D kernel_size, Conv2DOptions options)
      : Layer("Conv2DTranspose", {.name = options.name,
                                  .dtype = options.dtype,
                                  .activity_regularizer = options.activity_regularizer}),
        filters_(filters),
        window_{kernel_size, options.strides, options.dilation_rate},
        padding_(internal::parse_padding(options.padding, "Conv2DTranspose")),
        options_(std::move(options)) {
    if (filters < 1) {
      throw InvalidArgumentError(str("Conv2DTranspose: filters is ", filters, ", below 1"));
    }
    internal::check_positive(window_.size, "Conv2DTranspose", "kernel_size");
    internal::check_positive(window_.strides, "Conv2DTranspose", "strides");
    internal::check_positive(window_.dilation, "Conv2DTranspose", "dilation_rate");
    set_input_spec({.rank = 4, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      conv2d_transpose_fields(field, filters_, window_.size, options_);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = input_shapes[0].back();
    input_spec().last_dim = channels;
    kernel_ = add_weight(
        "kernel", {window_.size.height, window_.size.width, filters_, channels},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    if (!options_.use_bias) return;
    bias_ = add_weight(
        "bias", {filters_},
        {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor images = internal::to_channels_first(input.to(dtype()));
    Tensor kernel = kernel_.value().permute({3, 2, 0, 1});
    if (images.size(0) == 0) {  // libtorch's path for empty batches takes no strides of their own
      images = images.contiguous();
      kernel = kernel.contiguous();
    }
    const auto& [size, strides, dilation] = window_;
    const Cut rows = cut_of(images.size(2), size.height, strides.height, dilation.height, padding_);
    const Cut columns = cut_of(images.size(3), size.width, strides.width, dilation.width, padding_);
    const Tensor spread =
        at::conv_transpose2d(images, kernel, /*bias=*/Tensor(), {strides.height, strides.width},
                             /*padding=*/{0}, /*output_padding=*/{0},
                             /*groups=*/1, {dilation.height, dilation.width});
    const std::vector<int64_t> cuts = {-columns.before, -columns.after, -rows.before, -rows.after};
    const bool whole = cuts == std::vector<int64_t>(cuts.size());
    Tensor outputs = internal::to_channels_last(whole ? spread : at::constant_pad_nd(spread, cuts));
    if (bias_) outputs = outputs + bias_.value();
    return internal::activate_outputs(options_.activation, outputs);
  }

 private:
  int64_t filters_;
  Window window_;
  Padding padding_;
  Conv2DOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2D kernel_size, Conv2DOptions options)
    : LayerHandle(std::make_shared<Conv2DTransposeImpl>(filters, kernel_size, std::move(options))) {
}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_conv2d_transpose(FieldReader& field) {
  int64_t filters = 0;
  layers::Size2D kernel_size = 1;
  layers::Conv2DOptions options;
  field.common(options);
  layers::conv2d_transpose_fields(field, filters, kernel_size, options);
  return layers::Conv2DTranspose(filters, kernel_size, std::move(options));
}

}  // namespace cohort::internal
