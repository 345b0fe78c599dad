#include "cohort/keras/layers/group_normalization.h"

#include <ATen/ops/var_mean.h>

#include <utility>
#include <vector>

#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/normalizing_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

template <class Fields, class Options>
void group_normalization_fields(Fields& field, Options& options) {
  field("groups", options.groups);
  field("axis", options.axis);
  normalizing_fields(field, options);
}

class GroupNormalizationImpl final : public NormalizingLayer<GroupNormalizationOptions> {
 public:
  explicit GroupNormalizationImpl(GroupNormalizationOptions options)
      : NormalizingLayer("GroupNormalization", std::move(options)) {
    if (options_.groups < 1 && options_.groups != -1) {
      throw InvalidArgumentError(str("GroupNormalization: groups is ", options_.groups,
                                     "; it must be 1 or more, or -1 for as many as channels"));
    }
    set_input_spec({.min_rank = 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [this](auto& field) { group_normalization_fields(field, options_); });
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const Shape& shape = input_shapes[0];
    const auto rank = static_cast<int64_t>(shape.size());
    const int64_t axis = options_.axis < 0 ? options_.axis + rank : options_.axis;
    if (axis < 1 || axis >= rank) {
      throw InvalidArgumentError(str("layer '", name(), "': axis ", options_.axis,
                                     " is no axis of channels of an input of rank ", rank));
    }
    const int64_t channels = shape[static_cast<size_t>(axis)];
    const int64_t groups = options_.groups == -1 ? channels : options_.groups;
    if (groups < 1 || channels % groups != 0) {
      throw InvalidArgumentError(
          str("layer '", name(), "' has ", groups, " groups, which do not divide the ", channels,
              " channels of an input of shape ", internal::shape_str(shape)));
    }
    options_.groups = groups;  // as Keras, whose configurations have it then
    axis_ = axis;
    input_spec().rank = rank;
    input_spec().axes[axis] = channels;
    add_scale_and_offset({channels});
  }

  // In the dtype of its weights, as LayerNormalization.
  Tensor call(const Tensor& input, const CallOptions&) override {
    Shape grouped = input.sizes().vec();
    const auto place = static_cast<size_t>(axis_);
    const int64_t of_group = grouped[place] / options_.groups;
    grouped[place] = of_group;
    grouped.insert(grouped.begin() + axis_, options_.groups);
    Shape weights(grouped.size(), 1);
    weights[place] = options_.groups;
    weights[place + 1] = of_group;
    std::vector<int64_t> axes;
    for (int64_t axis = 1; axis < static_cast<int64_t>(grouped.size()); ++axis) {
      if (axis != axis_) axes.push_back(axis);
    }
    const Tensor x = input.to(variable_dtype()).reshape(grouped);
    const auto [variance, mean] = at::var_mean(x, axes, /*unbiased=*/false, /*keepdim=*/true);
    const Tensor output = scaled((x - mean) * (variance + options_.epsilon).rsqrt(), weights);
    return internal::keep_mask(input, output.reshape(input.sizes()).to(compute_dtype()));
  }

 private:
  int64_t axis_ = 0;  // counted from the first one; set by build
};

}  // namespace

GroupNormalization::GroupNormalization(GroupNormalizationOptions options)
    : LayerHandle(std::make_shared<GroupNormalizationImpl>(std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_group_normalization(FieldReader& field) {
  layers::GroupNormalizationOptions options;
  field.common(options);
  layers::group_normalization_fields(field, options);
  return layers::GroupNormalization(std::move(options));
}

}  // namespace cohort::internal
