#include "cohort/keras/layers/dense.h"

#include <utility>
#include <vector>

#include "cohort/keras/base/logits.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/layers/base/fusion.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/operation.h"
#include "cohort/ops/linear.h"

namespace cohort::keras::layers {
namespace {

template <class Fields, class Units, class Options>
void dense_fields(Fields& field, Units& units, Options& options) {
  field("units", units);
  field("activation", options.activation);
  field("use_bias", options.use_bias);
  field("kernel_initializer", options.kernel_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  field("activity_regularizer", options.activity_regularizer);
  field("kernel_constraint", options.kernel_constraint);
  field("bias_constraint", options.bias_constraint);
}

class DenseImpl final : public Layer,
                        public internal::DescribesOperation,
                        public internal::MultipliesInput {
 public:
  DenseImpl(int64_t units, DenseOptions options)
      : Layer("Dense", {.name = options.name,
                        .dtype = options.dtype,
                        .activity_regularizer = options.activity_regularizer}),
        units_(units),
        options_(std::move(options)) {
    if (units < 1) {
      throw InvalidArgumentError(internal::str("Dense: units is ", units, ", below 1"));
    }
    set_input_spec({.min_rank = 2, .floating = true});
  }

  std::optional<Config> get_config() const override {
    return internal::layer_config(*this,
                                  [this](auto& field) { dense_fields(field, units_, options_); });
  }

  internal::LayerOperation operation(bool) const override {
    return {.operations = {internal::plan::Dense{.units = units_, .bias = options_.use_bias}},
            .parameters = {&kernel_, &bias_},
            .activation = options_.activation};
  }

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t features = input_shapes[0].back();
    input_spec().last_dim = features;
    kernel_ = add_weight("kernel", {features, units_},
                         {.initializer = options_.kernel_initializer,
                          .regularizer = options_.kernel_regularizer,
                          .constraint = options_.kernel_constraint});
    if (options_.use_bias) {
      bias_ = add_weight("bias", {units_},
                         {.initializer = options_.bias_initializer,
                          .regularizer = options_.bias_regularizer,
                          .constraint = options_.bias_constraint});
    }
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    return internal::keep_mask(
        input, internal::activate_outputs(options_.activation, product(in_compute_dtype(input))));
  }

 public:
  Tensor call_on_product(const internal::Product& input) override {
    const Tensor left = in_compute_dtype(input.left), right = in_compute_dtype(input.right);
    const int64_t rows = left.size(0), inner = left.size(1), columns = right.size(1);
    const bool from_the_right =
        inner * units_ * (rows + columns) < rows * columns * (inner + units_);
    if (!from_the_right) {
      return internal::activate_outputs(options_.activation,
                                        product(in_compute_dtype(input.value())));
    }
    const Tensor bias = bias_ ? bias_.value() : Tensor();
    return internal::activate_outputs(
        options_.activation,
        internal::linear(left, internal::linear(right, kernel_.value(), Tensor()), bias));
  }

 private:
  Tensor product(const Tensor& x) const {
    const Tensor bias = bias_ ? bias_.value() : Tensor();
    if (x.dim() == 2) return internal::linear(x, kernel_.value(), bias);
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes.back() = units_;
    return internal::linear(x.flatten(0, -2), kernel_.value(), bias).reshape(sizes);
  }

  int64_t units_;
  DenseOptions options_;
  Variable kernel_;
  Variable bias_;
};

}  // namespace

Dense::Dense(int64_t units, DenseOptions options)
    : LayerHandle(std::make_shared<DenseImpl>(units, std::move(options))) {}

}  // namespace cohort::keras::layers

namespace cohort::internal {

namespace layers = keras::layers;

layers::LayerHandle read_dense(FieldReader& field) {
  int64_t units = 0;
  layers::DenseOptions options;
  field.common(options);
  layers::dense_fields(field, units, options);
  return layers::Dense(units, std::move(options));
}

}  // namespace cohort::internal
