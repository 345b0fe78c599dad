#include "cohort/keras/layers/activation_layers.h"

#include <ATen/ops/elu.h>
#include <ATen/ops/leaky_relu.h>

#include <utility>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"

namespace cohort::keras::layers {
namespace {

using internal::str;

// Each layer has its fields, what it says to plans, and its function of an input.

template <class Fields>
void fields_of(Fields& field, auto& options) requires(requires { options.max_value; }) {
  field("max_value", options.max_value);
  field("negative_slope", options.negative_slope);
  field("threshold", options.threshold);
}
internal::LayerOperation operation_of(const ReLUOptions& options) {
  if (options.max_value || options.threshold != 0 || options.negative_slope != 0) {
    return {.why_not = "its relu has options"};
  }
  return {.activation = "relu"};
}
Tensor apply(const Tensor& x, const ReLUOptions& options) {
  // Keras's choice, which has a slope at 0.
  if (options.threshold == 0 && !options.max_value && options.negative_slope != 0) {
    return at::leaky_relu(x, options.negative_slope);
  }
  Tensor above =
      options.threshold == 0 ? x.relu() : x * (x > options.threshold).to(x.scalar_type());
  if (options.max_value) above = above.clamp_max(*options.max_value);
  if (options.negative_slope == 0) return above;
  return above - (options.threshold - x).relu() * options.negative_slope;
}

template <class Fields>
void fields_of(Fields& field, auto& options) requires(requires { options.alpha; }) {
  field("alpha", options.alpha);
}
internal::LayerOperation operation_of(const LeakyReLUOptions& options) {
  return {.operations = {internal::plan::Activation{
              .function = internal::plan::Function::kLeakyRelu, .alpha = options.alpha}}};
}
internal::LayerOperation operation_of(const ELUOptions& options) {
  return {.operations = {internal::plan::Activation{.function = internal::plan::Function::kElu,
                                                    .alpha = options.alpha}}};
}
Tensor apply(const Tensor& x, const LeakyReLUOptions& options) {
  return at::leaky_relu(x, options.alpha);
}
Tensor apply(const Tensor& x, const ELUOptions& options) { return at::elu(x, options.alpha); }

template <class Fields>
void fields_of(Fields& field, auto& options) requires(requires { options.axis; }) {
  field.one_or_list("axis", options.axis);
}
internal::LayerOperation operation_of(const SoftmaxOptions& options) {
  if (options.axis != SoftmaxOptions().axis) return {.why_not = "its axis is not the last one"};
  return {.activation = "softmax"};
}
Tensor apply(const Tensor& input, const SoftmaxOptions& options) {
  Tensor x = input;
  if (const Tensor mask = internal::mask_of(input);
      mask.defined() && mask.sizes() == input.sizes()) {
    x = x + (1 - internal::mask_factors(mask, x)) * internal::large_negative(x);
  }
  if (options.axis.size() > 1) return (x - x.logsumexp(options.axis, /*keepdim=*/true)).exp();
  const int64_t axis = options.axis[0];
  const bool last = axis == -1 || axis == x.dim() - 1;
  return last ? internal::activate_outputs("softmax", x) : x.softmax(axis);
}

template <class Options>
class FunctionLayer final : public Layer, public internal::DescribesOperation {
 public:
  FunctionLayer(const char* class_name, Options options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        options_(std::move(options)) {
    set_input_spec({.floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this, [this](auto& field) { fields_of(field, options_); });
  }

  internal::LayerOperation operation(bool) const override { return operation_of(options_); }

 protected:
  Tensor call(const Tensor& input, const CallOptions&) override {
    return internal::keep_mask(input, apply(input, options_));
  }

 private:
  const Options options_;
};

template <class Options>
std::shared_ptr<Layer> make(const char* class_name, Options options) {
  return std::make_shared<FunctionLayer<Options>>(class_name, std::move(options));
}

template <class Handle, class Options>
LayerHandle read(internal::FieldReader& field) {
  Options options;
  field.common(options);
  fields_of(field, options);
  return Handle(std::move(options));
}

ReLUOptions checked(ReLUOptions options) {
  const auto check = [](const char* option, double value) {
    if (value >= 0) return;
    throw InvalidArgumentError(str("ReLU: ", option, " is ", value, "; it must not be below 0"));
  };
  check("max_value", options.max_value.value_or(0));
  check("negative_slope", options.negative_slope);
  check("threshold", options.threshold);
  return options;
}

SoftmaxOptions checked(SoftmaxOptions options) {
  if (options.axis.empty()) throw InvalidArgumentError("Softmax: axis names no axis");
  return options;
}

}  // namespace

ReLU::ReLU(ReLUOptions options) : LayerHandle(make("ReLU", checked(std::move(options)))) {}

LeakyReLU::LeakyReLU(LeakyReLUOptions options)
    : LayerHandle(make("LeakyReLU", std::move(options))) {}

ELU::ELU(ELUOptions options) : LayerHandle(make("ELU", std::move(options))) {}

Softmax::Softmax(SoftmaxOptions options)
    : LayerHandle(make("Softmax", checked(std::move(options)))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_relu(FieldReader& field) {
  return layers::read<layers::ReLU, layers::ReLUOptions>(field);
}
layers::LayerHandle read_leaky_relu(FieldReader& field) {
  return layers::read<layers::LeakyReLU, layers::LeakyReLUOptions>(field);
}
layers::LayerHandle read_elu(FieldReader& field) {
  return layers::read<layers::ELU, layers::ELUOptions>(field);
}
layers::LayerHandle read_softmax(FieldReader& field) {
  return layers::read<layers::Softmax, layers::SoftmaxOptions>(field);
}

}  // namespace cohort::internal
