#include "cohort/keras/layers/merging.h"

#include <ATen/ops/cat.h>

#include "cohort/keras/layers/describe_leaves.h"

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

class AddImpl final : public Layer {
 public:
  explicit AddImpl(const AddOptions& options) : Layer("Add", {.name = options.name}) {}

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    const std::vector<Tensor> tensors = tensors_of(inputs, 2, name());
    Tensor sum = tensors[0];
    for (size_t i = 1; i < tensors.size(); ++i) sum = sum + tensors[i];
    return sum;
  }
};

class ConcatenateImpl final : public Layer {
 public:
  explicit ConcatenateImpl(const ConcatenateOptions& options)
      : Layer("Concatenate", {.name = options.name}), axis_(options.axis) {}

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    return at::cat(tensors_of(inputs, 1, name()), axis_);
  }

 private:
  int64_t axis_;
};

}  // namespace

Add::Add(AddOptions options) : LayerHandle(std::make_shared<AddImpl>(options)) {}

Concatenate::Concatenate(ConcatenateOptions options)
    : LayerHandle(std::make_shared<ConcatenateImpl>(options)) {}

}  // namespace cohort::keras::layers
