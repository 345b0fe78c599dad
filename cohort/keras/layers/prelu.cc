#include "cohort/keras/layers/prelu.h"

#include <ATen/ops/relu.h>

#include <utility>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

class PReLUImpl final : public Layer {
 public:
  explicit PReLUImpl(PReLUOptions options)
      : Layer("PReLU", {.name = options.name, .dtype = options.dtype}),
        options_(std::move(options)) {
    set_input_spec({.min_rank = 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("alpha_initializer", options_.alpha_initializer);
      field("alpha_regularizer", options_.alpha_regularizer);
      field("alpha_constraint", options_.alpha_constraint);
      field.open_sizes("shared_axes", options_.shared_axes);
    });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const Shape& input = input_shapes[0];
    const auto rank = static_cast<int64_t>(input.size());
    Shape alpha(input.begin() + 1, input.end());
    for (const int64_t axis : options_.shared_axes) {
      if (axis < 1 || axis >= rank) {
        throw InvalidArgumentError(str("layer '", name(), "': shared axis ", axis,
                                       " is no axis of an example of an input of rank ", rank));
      }
      alpha[static_cast<size_t>(axis) - 1] = 1;
    }
    input_spec().rank = rank;
    for (int64_t axis = 1; axis < rank; ++axis) {
      const int64_t size = alpha[static_cast<size_t>(axis) - 1];
      if (size != 1) input_spec().axes[axis] = size;
    }
    alpha_ = add_weight("alpha", alpha,
                        {.initializer = options_.alpha_initializer,
                         .regularizer = options_.alpha_regularizer,
                         .constraint = options_.alpha_constraint});
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor x = in_compute_dtype(input);
    return internal::keep_mask(input, at::relu(x) - alpha_.value() * at::relu(-x));
  }

 private:
  const PReLUOptions options_;
  Variable alpha_;
};

}  // namespace

PReLU::PReLU(PReLUOptions options) : LayerHandle(std::make_shared<PReLUImpl>(std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_prelu(FieldReader& field) {
  layers::PReLUOptions options;
  field.common(options);
  field("alpha_initializer", options.alpha_initializer);
  field("alpha_regularizer", options.alpha_regularizer);
  field("alpha_constraint", options.alpha_constraint);
  field.open_sizes("shared_axes", options.shared_axes);
  return layers::PReLU(std::move(options));
}

}  // namespace cohort::internal
