#include "cohort/keras/layers/dense.h"

#include <ATen/ops/addmm.h>

#include <utility>

namespace cohort::keras::layers {
namespace {

class DenseImpl final : public Layer {
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

 protected:
  void build(const std::vector<Shape>& input_shapes) override {
    const int64_t features = input_shapes[0].back();
    input_spec().last_dim = features;
    kernel_ = add_weight(
        "kernel", {features, units_},
        {.initializer = options_.kernel_initializer, .regularizer = options_.kernel_regularizer});
    if (options_.use_bias) {
      bias_ = add_weight(
          "bias", {units_},
          {.initializer = options_.bias_initializer, .regularizer = options_.bias_regularizer});
    }
  }

  Tensor call(const Tensor& input, const CallOptions&) override {
    return options_.activation(product(input.to(dtype())));
  }

 private:
  Tensor product(const Tensor& x) const {
    if (!bias_) return x.matmul(kernel_.value());
    if (x.dim() == 2) return at::addmm(bias_.value(), x, kernel_.value());
    return x.matmul(kernel_.value()) + bias_.value();
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
