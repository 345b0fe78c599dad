#include "cohort/keras/layers/convolution/conv2d_transpose.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv_transpose2d.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/conv_fields.h"

namespace cohort::keras::layers {
namespace {

using internal::Padding;
using internal::str;
using internal::Window;

template <class Fields, class Filters, class Size, class Options>
void conv2d_transpose_fields(Fields& field, Filters& filters, Size& kernel_size, Options& options) {
  conv_fields(field, filters, kernel_size, options);
  field("output_padding", options.output_padding);
}

// Along one axis: windows, one for each pixel of the input, reach over `spread` pixels, from which
// `before` are cut off in front, and at the end (where it is below 0) pixels without any are added.
struct Cut {
  int64_t before;
  int64_t after;
};

Cut cut_of(int64_t size, int64_t reach, int64_t stride, Padding padding,
           std::optional<int64_t> output_padding) {
  const int64_t spread = (size - 1) * stride + reach;
  const bool is_same = padding == Padding::kSame;
  const int64_t wanted = output_padding ? spread - (is_same ? 2 * (reach / 2) : 0) + *output_padding
                         : is_same      ? size * stride
                                        : size * stride + std::max<int64_t>(reach - stride, 0);
  const int64_t before = std::max<int64_t>(spread - wanted, 0) / 2;
  return {before, spread - wanted - before};
}

class Conv2DTransposeImpl final : public Layer {
 public:
  Conv2DTransposeImpl(int64_t filters, Size2D kernel_size, Conv2DTransposeOptions options)
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
    internal::check_strides_or_dilation(window_.strides, window_.dilation, "Conv2DTranspose");
    if (options_.output_padding) check_output_padding(*options_.output_padding);
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
    // libtorch 1.13 takes this convolution for another one where a CPU multiplies bfloat16.
    const auto usable = [](const Tensor& x) { return x.is_cpu() ? internal::widened(x) : x; };
    Tensor images = internal::to_channels_first(usable(in_compute_dtype(input)));
    // Not all of libtorch's paths take strides of their own (see Conv2D).
    const Tensor kernel = usable(kernel_.value()).permute({3, 2, 0, 1}).contiguous();
    if (images.size(0) == 0) images = images.contiguous();
    const Size2D& strides = window_.strides;
    const Size2D& dilation = window_.dilation;
    const Size2D reach = internal::reach(window_);
    const auto& added = options_.output_padding;
    const Cut rows = cut_of(images.size(2), reach.height, strides.height, padding_,
                            added ? std::make_optional(added->height) : std::nullopt);
    const Cut columns = cut_of(images.size(3), reach.width, strides.width, padding_,
                               added ? std::make_optional(added->width) : std::nullopt);
    const Tensor spread =
        at::conv_transpose2d(images, kernel, /*bias=*/Tensor(), {strides.height, strides.width},
                             /*padding=*/{0}, /*output_padding=*/{0},
                             /*groups=*/1, {dilation.height, dilation.width});
    const std::vector<int64_t> cuts = {-columns.before, -columns.after, -rows.before, -rows.after};
    const bool whole = cuts == std::vector<int64_t>(cuts.size());
    Tensor outputs = internal::to_channels_last(whole ? spread : at::constant_pad_nd(spread, cuts))
                         .to(kernel_.value().scalar_type());
    if (bias_) outputs = outputs + bias_.value();
    return internal::activate_outputs(options_.activation, outputs);
  }

 private:
  void check_output_padding(const Size2D& added) const {
    if (std::min(added.height, added.width) >= 0 && added.height < window_.strides.height &&
        added.width < window_.strides.width) {
      return;
    }
    throw InvalidArgumentError(str("Conv2DTranspose: output_padding is (", added.height, ", ",
                                   added.width, "); it must be at least 0 and below the strides, (",
                                   window_.strides.height, ", ", window_.strides.width, ")"));
  }

  int64_t filters_;
  Window window_;
  Padding padding_;
  Conv2DTransposeOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Conv2DTranspose::Conv2DTranspose(int64_t filters, Size2D kernel_size,
                                 Conv2DTransposeOptions options)
    : LayerHandle(std::make_shared<Conv2DTransposeImpl>(filters, kernel_size, std::move(options))) {
}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_conv2d_transpose(FieldReader& field) {
  int64_t filters = 0;
  layers::Size2D kernel_size = 1;
  layers::Conv2DTransposeOptions options;
  field.common(options);
  layers::conv2d_transpose_fields(field, filters, kernel_size, options);
  return layers::Conv2DTranspose(filters, kernel_size, std::move(options));
}

}  // namespace cohort::internal
