#include "cohort/keras/layers/merging.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <utility>

#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/ops/kinks.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// The tensors of a tuple or dict. Errors: InvalidArgument (fewer than `least`; strings).
std::vector<Tensor> tensors_of(const Structure& inputs, size_t least, const std::string& layer) {
  std::vector<Tensor> tensors;
  inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  if (tensors.size() < least) {
    throw InvalidArgumentError(str("layer '", layer, "' takes a tuple of ", least,
                                   " or more tensors, but got ",
                                   internal::describe_leaves(inputs)));
  }
  return tensors;
}

// The mask of what is merged step by step: a step counts where it counts in all inputs.
Tensor common_mask(const std::vector<Tensor>& tensors) {
  Tensor common;
  for (const Tensor& tensor : tensors) {
    const Tensor mask = internal::mask_of(tensor);
    if (mask.defined()) common = common.defined() ? common.logical_and(mask) : mask;
  }
  return common;
}

using Merge = Tensor (*)(const Tensor& a, const Tensor& b);

// An input with fewer dimensions lacks those behind the batch, as in Keras, so that
// [batch, features] goes with each step of [batch, steps, features].
Tensor of_rank(int64_t rank, Tensor tensor) {
  while (tensor.dim() > 0 && tensor.dim() < rank) tensor = tensor.unsqueeze(1);
  return tensor;
}

// Merges the inputs one after another.
class MergeImpl : public Layer {
 public:
  MergeImpl(const char* class_name, const MergeOptions& options, Merge merge)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}), merge_(merge) {}

  std::optional<Config> get_config() const override { return internal::plain_layer_config(*this); }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const std::vector<Tensor> tensors = tensors_of(inputs, 2, name());
    return internal::with_mask(merged(tensors), common_mask(tensors));
  }
  virtual Tensor merged(const std::vector<Tensor>& tensors) const {
    int64_t rank = 0;
    for (const Tensor& tensor : tensors) rank = std::max(rank, tensor.dim());
    Tensor result = of_rank(rank, tensors[0]);
    for (size_t i = 1; i < tensors.size(); ++i) result = merge_(result, of_rank(rank, tensors[i]));
    return result;
  }

 private:
  Merge merge_;
};

Tensor sum_of_two(const Tensor& a, const Tensor& b) { return a + b; }

class AverageImpl final : public MergeImpl {
 public:
  explicit AverageImpl(const MergeOptions& options) : MergeImpl("Average", options, sum_of_two) {}

 protected:
  Tensor merged(const std::vector<Tensor>& tensors) const override {
    return MergeImpl::merged(tensors) / static_cast<double>(tensors.size());
  }
};

class SubtractImpl final : public MergeImpl {
 public:
  explicit SubtractImpl(const MergeOptions& options)
      : MergeImpl("Subtract", options, [](const Tensor& a, const Tensor& b) { return a - b; }) {}

 protected:
  Structure call(const Structure& inputs, const CallOptions& options) override {
    if (tensors_of(inputs, 2, name()).size() > 2) {
      throw InvalidArgumentError(
          str("layer '", name(), "' takes 2 tensors, but got ", internal::describe_leaves(inputs)));
    }
    return MergeImpl::call(inputs, options);
  }
};

class ConcatenateImpl final : public Layer {
 public:
  explicit ConcatenateImpl(const ConcatenateOptions& options)
      : Layer("Concatenate", {.name = options.name, .dtype = options.dtype}), axis_(options.axis) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { field("axis", axis_); });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const std::vector<Tensor> tensors = tensors_of(inputs, 1, name());
    return internal::with_mask(at::cat(tensors, axis_), concatenated_mask(tensors));
  }

 private:
  // Along the features a step counts where it counts in all inputs; along the steps each is its
  // own.
  Tensor concatenated_mask(const std::vector<Tensor>& tensors) const {
    const int64_t rank = tensors[0].dim();
    const bool of_steps = rank > 2 && (axis_ == 1 || axis_ == 1 - rank);
    if (!of_steps) return common_mask(tensors);
    const bool any = std::any_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
      return internal::mask_of(tensor).defined();
    });
    if (!any) return {};
    std::vector<Tensor> masks;
    for (const Tensor& tensor : tensors) {
      const Tensor mask = internal::mask_of(tensor);
      masks.push_back(mask.defined() ? mask
                                     : at::ones({tensor.size(0), tensor.size(1)},
                                                tensor.options().dtype(at::kBool)));
    }
    return at::cat(masks, 1);
  }

  int64_t axis_;
};

}  // namespace

Add::Add(MergeOptions options)
    : LayerHandle(std::make_shared<MergeImpl>("Add", options, sum_of_two)) {}

Subtract::Subtract(MergeOptions options) : LayerHandle(std::make_shared<SubtractImpl>(options)) {}

Multiply::Multiply(MergeOptions options)
    : LayerHandle(std::make_shared<MergeImpl>(
          "Multiply", options, [](const Tensor& a, const Tensor& b) { return a * b; })) {}

Average::Average(MergeOptions options) : LayerHandle(std::make_shared<AverageImpl>(options)) {}

Maximum::Maximum(MergeOptions options)
    : LayerHandle(std::make_shared<MergeImpl>("Maximum", options, internal::maximum)) {}

Minimum::Minimum(MergeOptions options)
    : LayerHandle(std::make_shared<MergeImpl>("Minimum", options, internal::minimum)) {}

Concatenate::Concatenate(ConcatenateOptions options)
    : LayerHandle(std::make_shared<ConcatenateImpl>(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

template <class Merging>
layers::LayerHandle read_merging(FieldReader& field) {
  layers::MergeOptions options;
  field.common(options);
  return Merging(options);
}

layers::LayerHandle read_add(FieldReader& field) { return read_merging<layers::Add>(field); }
layers::LayerHandle read_subtract(FieldReader& field) {
  return read_merging<layers::Subtract>(field);
}
layers::LayerHandle read_multiply(FieldReader& field) {
  return read_merging<layers::Multiply>(field);
}
layers::LayerHandle read_average(FieldReader& field) {
  return read_merging<layers::Average>(field);
}
layers::LayerHandle read_maximum(FieldReader& field) {
  return read_merging<layers::Maximum>(field);
}
layers::LayerHandle read_minimum(FieldReader& field) {
  return read_merging<layers::Minimum>(field);
}

layers::LayerHandle read_concatenate(FieldReader& field) {
  layers::ConcatenateOptions options;
  field.common(options);
  field("axis", options.axis);
  return layers::Concatenate(options);
}

}  // namespace cohort::internal
