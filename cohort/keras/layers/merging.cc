#include "cohort/keras/layers/merging.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>

#include "cohort/keras/layers/describe_leaves.h"
#include "cohort/keras/saving/layer_config.h"

namespace cohort::keras::layers {
namespace {

// The tensors of a tuple or dict. Errors: InvalidArgument (fewer than `least`; strings).
std::vector<Tensor> tensors_of(const Structure& inputs, size_t least, const std::string& layer) {
  std::vector<Tensor> tensors;
  inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  if (tensors.size() < least) {
    throw InvalidArgumentError(internal::str("layer '", layer, "' takes a tuple of ", least,
                                             " or more tensors, but got ",
                                             internal::describe_leaves(inputs)));
  }
  return tensors;
}

using Merge = Tensor (*)(const Tensor& a, const Tensor& b);

// Merges the inputs one after another.
class MergeImpl : public Layer {
 public:
  MergeImpl(const char* class_name, const MergeOptions& options, Merge merge)
      : Layer(class_name, {.name = options.name}), merge_(merge) {}

  std::optional<Config> get_config() const override { return internal::plain_layer_config(*this); }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    return merged(tensors_of(inputs, 2, name()));
  }
  Tensor merged(const std::vector<Tensor>& tensors) const {
    Tensor result = tensors[0];
    for (size_t i = 1; i < tensors.size(); ++i) result = merge_(result, tensors[i]);
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
  Structure call(const Structure& inputs, const CallOptions&) override {
    const std::vector<Tensor> tensors = tensors_of(inputs, 2, name());
    return merged(tensors) / static_cast<double>(tensors.size());
  }
};

class SubtractImpl final : public Layer {
 public:
  explicit SubtractImpl(const MergeOptions& options) : Layer("Subtract", {.name = options.name}) {}

  std::optional<Config> get_config() const override { return internal::plain_layer_config(*this); }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const std::vector<Tensor> tensors = tensors_of(inputs, 2, name());
    if (tensors.size() > 2) {
      throw InvalidArgumentError(internal::str("layer '", name(), "' takes 2 tensors, but got ",
                                               internal::describe_leaves(inputs)));
    }
    return tensors[0] - tensors[1];
  }
};

class ConcatenateImpl final : public Layer {
 public:
  explicit ConcatenateImpl(const ConcatenateOptions& options)
      : Layer("Concatenate", {.name = options.name}), axis_(options.axis) {}

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { field("axis", axis_); });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    return at::cat(tensors_of(inputs, 1, name()), axis_);
  }

 private:
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
    : LayerHandle(std::make_shared<MergeImpl>(
          "Maximum", options, [](const Tensor& a, const Tensor& b) { return at::maximum(a, b); })) {
}

Minimum::Minimum(MergeOptions options)
    : LayerHandle(std::make_shared<MergeImpl>(
          "Minimum", options, [](const Tensor& a, const Tensor& b) { return at::minimum(a, b); })) {
}

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
