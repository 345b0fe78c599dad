#include "cohort/keras/layers/convolution/conv1d.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/convolution/conv_fields.h"
#include "cohort/ops/plan/operation.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

class Conv1DImpl final : public Layer {
 public:
  Conv1DImpl(int64_t filters, int64_t kernel_size, Conv1DOptions options)
      : Layer("Conv1D", {.name = options.name,
                         .dtype = options.dtype,
                         .activity_regularizer = options.activity_regularizer}),
        filters_(filters),
        // A sequence is an image of one row.
        window_{{1, kernel_size}, {1, options.strides}, {1, options.dilation_rate}},
        causal_(options.padding == "causal"),
        same_(!causal_ &&
              internal::parse_padding(options.padding, "Conv1D") == internal::Padding::kSame),
        options_(std::move(options)) {
    if (filters < 1) throw InvalidArgumentError(str("Conv1D: filters is ", filters, ", below 1"));
    internal::check_positive(window_.size, "Conv1D", "kernel_size");
    internal::check_positive(window_.strides, "Conv1D", "strides");
    internal::check_positive(window_.dilation, "Conv1D", "dilation_rate");
    internal::check_strides_or_dilation(window_.strides, window_.dilation, "Conv1D");
    set_input_spec({.rank = 3, .floating = true});
    if (!causal_ && !same_) input_spec().window = {internal::reach(window_).width};
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { conv_fields(field, filters_, window_.size.width, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t channels = input_shapes[0].back();
    input_spec().last_dim = channels;
    kernel_ = add_weight(
        "kernel", {window_.size.width, channels, filters_},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    if (options_.use_bias) {
      bias_ = add_weight(
          "bias", {filters_},
          {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
    }
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    Tensor padded = pad(in_compute_dtype(input).transpose(1, 2));
    int64_t stride = window_.strides.width;
    if (internal::plan::has_gaps({1, window_.size.width}, {1, stride})) {
      padded = padded.slice(2, 0, padded.size(2), stride);
      stride = 1;
    }
    // Not all of libtorch's paths take a kernel with strides of its own (see Conv2D).
    const Tensor kernel = kernel_.value().permute({2, 1, 0}).contiguous();
    const Tensor outputs = at::conv1d(padded, kernel, bias_ ? bias_.value() : Tensor(), {stride},
                                      /*padding=*/at::IntArrayRef{0}, {window_.dilation.width});
    return internal::activate_outputs(options_.activation, outputs.transpose(1, 2));
  }

 private:
  // sequences: [batch, channels, steps].
  Tensor pad(const Tensor& sequences) const {
    if (causal_) {
      const int64_t before = (window_.size.width - 1) * window_.dilation.width;
      return at::constant_pad_nd(sequences, {before, 0});
    }
    if (!same_) return sequences;
    const internal::Border border = internal::same_border(sequences.unsqueeze(2), window_);
    return at::constant_pad_nd(sequences, {border.left, border.right});
  }

  int64_t filters_;
  internal::Window window_;
  bool causal_;
  bool same_;
  Conv1DOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Conv1D::Conv1D(int64_t filters, int64_t kernel_size, Conv1DOptions options)
    : LayerHandle(std::make_shared<Conv1DImpl>(filters, kernel_size, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_conv1d(FieldReader& field) {
  int64_t filters = 0;
  int64_t kernel_size = 0;
  layers::Conv1DOptions options;
  field.common(options);
  layers::conv_fields(field, filters, kernel_size, options);
  return layers::Conv1D(filters, kernel_size, std::move(options));
}

}  // namespace cohort::internal
