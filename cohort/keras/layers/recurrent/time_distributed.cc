#include "cohort/keras/layers/recurrent/time_distributed.h"

#include <optional>
#include <utility>
#include <vector>

#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/layer_reader.h"
#include "cohort/keras/layers/base/segments.h"
#include "cohort/keras/layers/base/serialized_layer.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

Leaf reshaped(const Leaf& leaf, Shape shape) {
  if (leaf.is_tensor()) return leaf.tensor().reshape(shape);
  return leaf.strings().reshape(std::move(shape));
}

// A mask [batch, steps, ..] as [batch, steps]: whether anything of a step counts.
Tensor by_step(const Tensor& mask) { return mask.dim() == 2 ? mask : mask.flatten(2).any(-1); }

class TimeDistributedImpl final : public Layer {
 public:
  TimeDistributedImpl(const LayerHandle& layer, const TimeDistributedOptions& options)
      : Layer("TimeDistributed", {.name = options.name, .dtype = options.dtype, .autocast = false}),
        layer_(layer),
        run_(std::vector<Layer*>{layer_.get()}) {
    track("layer", layer_);
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](internal::FieldWriter& field) {
      field.always("layer", internal::serialized_layer(*layer_.get()));
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    const Shape first = check(inputs);
    const int64_t rows = first[0], steps = first[1];
    Tensor mask;  // of the first input
    bool is_first = true;
    const Structure merged = inputs.map([&](const Leaf& leaf) {
      if (std::exchange(is_first, false) && leaf.is_tensor()) {
        mask = internal::mask_of(leaf.tensor());
      }
      return merge(leaf, rows * steps);
    });
    const Structure outputs = run_(merged, options);
    return outputs.map([&](const Leaf& leaf) {
      check_output(leaf, rows * steps);
      return split(leaf, rows, steps, mask);
    });
  }

 private:
  // Errors: InvalidArgument (it is not one of as many examples).
  void check_output(const Leaf& leaf, int64_t examples) const {
    const Shape shape = leaf.sizes();
    if (!shape.empty() && shape[0] == examples) return;
    throw InvalidArgumentError(str(
        "layer '", name(), "' gives each of ", examples, " steps to layer '", layer_.get()->name(),
        "' as an example of one batch, but its output is of shape ", internal::shape_str(shape)));
  }

  // The first input's shape. Errors: InvalidArgument.
  Shape check(const Structure& inputs) const {
    std::optional<Shape> first;
    bool fits = true;
    inputs.for_each([&](const Leaf& leaf) {
      const Shape shape = leaf.sizes();
      fits = fits && shape.size() >= 3;
      if (!first) first = shape;
      fits = fits && shape[0] == (*first)[0] && shape[1] == (*first)[1];
    });
    if (fits && first) return *first;
    throw InvalidArgumentError(str("layer '", name(),
                                   "' takes [batch, steps, ..] of rank 3 or more, of one batch and "
                                   "as many steps, but got ",
                                   internal::describe_leaves(inputs)));
  }

  // [batch, steps, ..] -> [batch * steps, ..]
  static Leaf merge(const Leaf& leaf, int64_t examples) {
    Shape shape = leaf.sizes();
    shape.erase(shape.begin());
    shape[0] = examples;
    Leaf merged = reshaped(leaf, shape);
    const Tensor mask = leaf.is_tensor() ? internal::mask_of(leaf.tensor()) : Tensor();
    if (!mask.defined()) return merged;
    // No layer but one of vectors knows what it means that a whole example does not count.
    if (mask.dim() == 2 && shape.size() > 2) return merged;
    return internal::with_mask(merged.tensor(), mask.flatten(0, 1));
  }

  // [batch * steps, ..] -> [batch, steps, ..]
  static Leaf split(const Leaf& leaf, int64_t rows, int64_t steps, const Tensor& mask) {
    const auto whole = [&](Shape shape) {
      shape[0] = steps;
      shape.insert(shape.begin(), rows);
      return shape;
    };
    Leaf output = reshaped(leaf, whole(leaf.sizes()));
    if (!leaf.is_tensor()) return output;
    const Tensor own = internal::mask_of(leaf.tensor());
    if (own.defined())
      return internal::with_mask(output.tensor(), own.reshape(whole(own.sizes().vec())));
    return mask.defined() ? internal::with_mask(output.tensor(), by_step(mask)) : output;
  }

  const LayerHandle layer_;
  const internal::Segments run_;  // a plan, where the layer can be planned
};

}  // namespace

TimeDistributed::TimeDistributed(const LayerHandle& layer, TimeDistributedOptions options)
    : LayerHandle(std::make_shared<TimeDistributedImpl>(layer, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_time_distributed(FieldReader& field) {
  keras::layers::TimeDistributedOptions options;
  field.common(options);
  return keras::layers::TimeDistributed(layer_field(field, "layer"), std::move(options));
}

}  // namespace cohort::internal
