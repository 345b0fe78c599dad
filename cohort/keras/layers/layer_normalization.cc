#include "cohort/keras/layers/layer_normalization.h"

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>
#include <utility>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/normalizing_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

template <class Fields, class Options>
void layer_normalization_fields(Fields& field, Options& options) {
  field.one_or_list("axis", options.axis);
  normalizing_fields(field, options);
}

class LayerNormalizationImpl final : public NormalizingLayer<LayerNormalizationOptions> {
 public:
  explicit LayerNormalizationImpl(LayerNormalizationOptions options)
      : NormalizingLayer("LayerNormalization", std::move(options)) {
    if (options_.axis.empty()) {
      throw InvalidArgumentError(
          "LayerNormalization: axis names no axis; -1 is the last one, of the features");
    }
    set_input_spec({.min_rank = 1, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { layer_normalization_fields(field, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const Shape& shape = input_shapes[0];
    const auto rank = static_cast<int64_t>(shape.size());
    input_spec().rank = rank;
    for (const int64_t axis : options_.axis) {
      axes_.push_back(axis < 0 ? axis + rank : axis);
      if (axes_.back() < 1 || axes_.back() >= rank) {
        throw InvalidArgumentError(str("layer '", name(), "': axis ", axis,
                                       " is no axis of features of an input of rank ", rank));
      }
    }
    Shape weights;  // in the order in which the axes were given, as in Keras
    for (const int64_t axis : axes_) weights.push_back(shape[static_cast<size_t>(axis)]);
    std::sort(axes_.begin(), axes_.end());
    if (const auto twice = std::adjacent_find(axes_.begin(), axes_.end()); twice != axes_.end()) {
      throw InvalidArgumentError(str("layer '", name(), "': axis names axis ", *twice,
                                     " of an input of rank ", rank, " twice"));
    }
    broadcast_.assign(shape.size(), 1);
    for (const int64_t axis : axes_) {
      sizes_.push_back(shape[static_cast<size_t>(axis)]);
      broadcast_[static_cast<size_t>(axis)] = sizes_.back();
    }
    if (axes_.back() == rank - 1) input_spec().last_dim = sizes_.back();
    add_scale_and_offset(weights);
  }

  // In the dtype of its weights: float32 where the policy is a mixed one, as Keras.
  Tensor call(const Tensor& input, const CallOptions&) override {
    const Tensor x = input.to(variable_dtype());
    if (axes_.front() == x.dim() - static_cast<int64_t>(axes_.size())) {
      return finished(input, at::layer_norm(x, sizes_, along_axes(gamma()), along_axes(beta()),
                                            options_.epsilon));
    }
    const auto [variance, mean] = at::var_mean(x, axes_, /*unbiased=*/false, /*keepdim=*/true);
    return finished(input, scaled((x - mean) * (variance + options_.epsilon).rsqrt(), broadcast_));
  }

 private:
  Tensor finished(const Tensor& input, const Tensor& output) const {
    return internal::keep_mask(input, output.to(compute_dtype()));
  }

  // Keras reads the weights in the order of the input's axes, whatever the order of the option.
  Tensor along_axes(const Tensor& weight) const {
    return weight.defined() && weight.sizes() != sizes_ ? weight.reshape(sizes_) : weight;
  }

  std::vector<int64_t> axes_;       // ascending
  std::vector<int64_t> sizes_;      // along them
  std::vector<int64_t> broadcast_;  // the shape in which the weights meet an input
};

}  // namespace

LayerNormalization::LayerNormalization(LayerNormalizationOptions options)
    : LayerHandle(std::make_shared<LayerNormalizationImpl>(std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_layer_normalization(FieldReader& field) {
  layers::LayerNormalizationOptions options;
  field.common(options);
  layers::layer_normalization_fields(field, options);
  return layers::LayerNormalization(std::move(options));
}

}  // namespace cohort::internal
