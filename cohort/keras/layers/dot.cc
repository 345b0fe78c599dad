#include "cohort/keras/layers/dot.h"

#include <ATen/ops/bmm.h>

#include <utility>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/keras/base/describe_leaves.h"
#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// The vectors that lie along `axis`, as rows: [batch, others, n], with the sizes of the others.
struct Rows {
  Rows(const Tensor& input, int64_t axis) : vectors(input.movedim(axis, -1)) {
    others = vectors.sizes().slice(1, static_cast<size_t>(vectors.dim() - 2)).vec();
    vectors = vectors.reshape({vectors.size(0), numel_of(others), vectors.size(-1)});
  }
  static int64_t numel_of(const std::vector<int64_t>& sizes) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    return count;
  }
  Tensor vectors;
  std::vector<int64_t> others;
};

class DotImpl final : public Layer {
 public:
  DotImpl(const AxisPair& axes, const DotOptions& options)
      : Layer("Dot", {.name = options.name, .dtype = options.dtype}),
        axes_(axes),
        normalize_(options.normalize) {
    if (axes.first == 0 || axes.second == 0) {
      throw InvalidArgumentError(str("Dot: the axes are ", axes.first, " and ", axes.second,
                                     "; axis 0 is the batch, over which there is no sum"));
    }
    set_input_spec({.min_rank = 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) {
      field("axes", std::vector<int64_t>{axes_.first, axes_.second});
      field("normalize", normalize_);
    });
  }

 protected:
  Structure call(const Structure& inputs, const CallOptions&) override {
    std::vector<Tensor> tensors;
    inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
    if (tensors.size() != 2) fail("takes a tuple of 2 tensors", inputs);
    const int64_t first_axis = axis_of(axes_.first, tensors[0], inputs);
    const int64_t second_axis = axis_of(axes_.second, tensors[1], inputs);
    if (tensors[0].size(first_axis) != tensors[1].size(second_axis) ||
        tensors[0].size(0) != tensors[1].size(0)) {
      fail(str("takes two tensors with as many examples and equal sizes of axes ", axes_.first,
               " and ", axes_.second),
           inputs);
    }
    const Rows a(normalized(tensors[0], first_axis), first_axis);
    const Rows b(normalized(tensors[1], second_axis), second_axis);
    std::vector<int64_t> sizes = {tensors[0].size(0)};
    sizes.insert(sizes.end(), a.others.begin(), a.others.end());
    sizes.insert(sizes.end(), b.others.begin(), b.others.end());
    if (sizes.size() == 1) sizes.push_back(1);
    return at::bmm(a.vectors, b.vectors.transpose(1, 2)).reshape(sizes);
  }

 private:
  [[noreturn]] void fail(const std::string& expected, const Structure& inputs) const {
    throw InvalidArgumentError(
        str("layer '", name(), "' ", expected, ", but got ", internal::describe_leaves(inputs)));
  }
  int64_t axis_of(int64_t axis, const Tensor& input, const Structure& inputs) const {
    const int64_t counted = axis < 0 ? axis + input.dim() : axis;
    if (counted < 1 || counted >= input.dim()) {
      fail(str("sums along axis ", axis, ", which is no axis of features of each input"), inputs);
    }
    return counted;
  }
  Tensor normalized(const Tensor& input, int64_t axis) const {
    constexpr double kLeast = 1e-12;  // Keras's
    if (!normalize_) return input;
    return input * input.square().sum({axis}, /*keepdim=*/true).clamp_min(kLeast).rsqrt();
  }

  const AxisPair axes_;
  const bool normalize_;
};

}  // namespace

Dot::Dot(AxisPair axes, DotOptions options)
    : LayerHandle(std::make_shared<DotImpl>(axes, options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

keras::layers::LayerHandle read_dot(FieldReader& field) {
  std::vector<int64_t> axes;
  keras::layers::DotOptions options;
  field.common(options);
  field.one_or_list("axes", axes);
  field("normalize", options.normalize);
  if (axes.empty() || axes.size() > 2) {
    throw InvalidArgumentError(str(quoted("axes"), " names ", axes.size(), " axes, not 1 or 2"));
  }
  return keras::layers::Dot({axes.front(), axes.back()}, std::move(options));
}

}  // namespace cohort::internal
