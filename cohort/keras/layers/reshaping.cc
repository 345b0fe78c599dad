#include "cohort/keras/layers/reshaping.h"

#include <ATen/ops/alias.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

class FlattenImpl final : public Layer, public internal::DescribesOperation {
 public:
  explicit FlattenImpl(const ReshapingOptions& options)
      : Layer("Flatten", {.name = options.name, .dtype = options.dtype}) {
    set_input_spec({.min_rank = 1});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(
        *this, [](auto& field) { field.always("data_format", "channels_last"); });
  }

  internal::LayerOperation operation(bool) const override {
    return {.operations = {internal::plan::Flatten{}}};
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    // Not -1: the number of elements of an example counts in an empty batch, too.
    return input.reshape({input.size(0), c10::multiply_integers(input.sizes().slice(1))});
  }
};

class ReshapeImpl final : public Layer, public internal::DescribesOperation {
 public:
  ReshapeImpl(Shape target_shape, const ReshapingOptions& options)
      : Layer("Reshape", {.name = options.name, .dtype = options.dtype}),
        target_shape_(std::move(target_shape)) {
    const auto unknown = std::count(target_shape_.begin(), target_shape_.end(), -1);
    const bool negative = std::any_of(target_shape_.begin(), target_shape_.end(),
                                      [](int64_t size) { return size < -1; });
    if (negative || unknown > 1) {
      throw InvalidArgumentError(str("Reshape: the target shape is ",
                                     internal::shape_str(target_shape_),
                                     "; sizes are 0 or more, and one may be -1"));
    }
    for (const int64_t size : target_shape_) {
      if (size == -1 || !__builtin_mul_overflow(known_, size, &known_)) continue;
      throw InvalidArgumentError(str("Reshape: the target shape is ",
                                     internal::shape_str(target_shape_),
                                     ", of more elements than 64 bits count"));
    }
    set_input_spec({.min_rank = 1});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { field("target_shape", target_shape_); });
  }

  internal::LayerOperation operation(bool) const override {
    return {.operations = {internal::plan::Reshape{.example = target_shape_}}};
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    const int64_t size = c10::multiply_integers(input.sizes().slice(1));
    Shape shape{input.size(0)};
    for (const int64_t dim : target_shape_) {
      shape.push_back(dim != -1 ? dim : known_ == 0 ? 0 : size / known_);
    }
    if (c10::multiply_integers(at::IntArrayRef(shape).slice(1)) != size) {
      throw InvalidArgumentError(str("layer '", name(), "' cannot give examples of shape ",
                                     internal::shape_str(input.sizes().slice(1)), " the shape ",
                                     internal::shape_str(target_shape_)));
    }
    return input.reshape(shape);
  }

 private:
  Shape target_shape_;
  int64_t known_ = 1;  // the product of the sizes that are given
};

class PermuteImpl final : public Layer {
 public:
  PermuteImpl(std::vector<int64_t> dims, const ReshapingOptions& options)
      : Layer("Permute", {.name = options.name, .dtype = options.dtype}), dims_(std::move(dims)) {
    std::vector<int64_t> ascending = dims_;
    std::sort(ascending.begin(), ascending.end());
    for (size_t i = 0; i < ascending.size(); ++i) {
      if (ascending[i] == static_cast<int64_t>(i) + 1) continue;
      throw InvalidArgumentError(str("Permute: dims is ", internal::shape_str(dims_),
                                     "; it must name each of 1 to ", dims_.size(), " once"));
    }
    set_input_spec({.rank = static_cast<int64_t>(dims_.size()) + 1});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { field("dims", dims_); });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    Shape order{0};
    order.insert(order.end(), dims_.begin(), dims_.end());
    return input.permute(order).contiguous();
  }

 private:
  const std::vector<int64_t> dims_;
};

class RepeatVectorImpl final : public Layer {
 public:
  RepeatVectorImpl(int64_t n, const ReshapingOptions& options)
      : Layer("RepeatVector", {.name = options.name, .dtype = options.dtype}), n_(n) {
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (n < 1 || n > kMost) {
      throw InvalidArgumentError(
          str("RepeatVector: n is ", n, "; it must be at least 1, and at most ", kMost));
    }
    set_input_spec({.rank = 2});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { field("n", n_); });
  }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    return input.unsqueeze(1).expand({input.size(0), n_, input.size(1)}).contiguous();
  }

 private:
  const int64_t n_;
};

class IdentityImpl final : public Layer {
 public:
  explicit IdentityImpl(const ReshapingOptions& options)
      : Layer("Identity", {.name = options.name, .dtype = options.dtype}) {}

  std::optional<Config> get_config() const override { return internal::plain_layer_config(*this); }

 protected:
  // Tensors of their own: a mask of the input ends here, as in Keras.
  Structure call(const Structure& inputs, const CallOptions&) override {
    return inputs.map([](const Leaf& leaf) -> Leaf {
      return leaf.is_tensor() ? Leaf(at::alias(leaf.tensor())) : leaf;
    });
  }
};

}  // namespace

Flatten::Flatten(ReshapingOptions options) : LayerHandle(std::make_shared<FlattenImpl>(options)) {}

Reshape::Reshape(Shape target_shape, ReshapingOptions options)
    : LayerHandle(std::make_shared<ReshapeImpl>(std::move(target_shape), options)) {}

Permute::Permute(std::vector<int64_t> dims, ReshapingOptions options)
    : LayerHandle(std::make_shared<PermuteImpl>(std::move(dims), options)) {}

RepeatVector::RepeatVector(int64_t n, ReshapingOptions options)
    : LayerHandle(std::make_shared<RepeatVectorImpl>(n, options)) {}

Identity::Identity(ReshapingOptions options)
    : LayerHandle(std::make_shared<IdentityImpl>(options)) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_flatten(FieldReader& field) {
  layers::ReshapingOptions options;
  field.common(options);
  field.always("data_format", "channels_last");
  return layers::Flatten(options);
}

layers::LayerHandle read_reshape(FieldReader& field) {
  keras::Shape target_shape;
  layers::ReshapingOptions options;
  field.common(options);
  field("target_shape", target_shape);
  return layers::Reshape(std::move(target_shape), options);
}

layers::LayerHandle read_permute(FieldReader& field) {
  std::vector<int64_t> dims;
  layers::ReshapingOptions options;
  field.common(options);
  field("dims", dims);
  return layers::Permute(std::move(dims), options);
}

layers::LayerHandle read_repeat_vector(FieldReader& field) {
  int64_t n = 0;
  layers::ReshapingOptions options;
  field.common(options);
  field("n", n);
  return layers::RepeatVector(n, options);
}

layers::LayerHandle read_identity(FieldReader& field) {
  layers::ReshapingOptions options;
  field.common(options);
  return layers::Identity(options);
}

}  // namespace cohort::internal
