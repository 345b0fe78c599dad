// What layers that normalize their inputs have in common: an epsilon, and behind the normalizing a
// scale, "gamma", and an offset, "beta", that are learned. For sources of this folder.
#pragma once

#include <cmath>
#include <optional>
#include <utility>

#include "cohort/keras/layers/base/layer_config.h"

namespace cohort::keras::layers {

template <class Fields, class Options>
void normalizing_fields(Fields& field, Options& options) {
  field("epsilon", options.epsilon);
  field("center", options.center);
  field("scale", options.scale);
  field("beta_initializer", options.beta_initializer);
  field("gamma_initializer", options.gamma_initializer);
  field("beta_regularizer", options.beta_regularizer);
  field("gamma_regularizer", options.gamma_regularizer);
  field("beta_constraint", options.beta_constraint);
  field("gamma_constraint", options.gamma_constraint);
}

template <class Options>
class NormalizingLayer : public Layer {
 protected:
  // Errors: InvalidArgument (epsilon).
  NormalizingLayer(const char* class_name, Options options)
      : Layer(class_name, {.name = options.name, .dtype = options.dtype}),
        options_(std::move(options)) {
    if (!(options_.epsilon >= 0 && std::isfinite(options_.epsilon))) {
      throw InvalidArgumentError(internal::str(class_name, ": epsilon is ", options_.epsilon,
                                               "; it must be a finite number not below 0"));
    }
  }

  void add_scale_and_offset(const Shape& shape, std::optional<DType> dtype = std::nullopt) {
    if (options_.scale) {
      gamma_ = add_weight("gamma", shape,
                          {.initializer = options_.gamma_initializer,
                           .regularizer = options_.gamma_regularizer,
                           .dtype = dtype,
                           .autocast = false,
                           .constraint = options_.gamma_constraint});
    }
    if (options_.center) {
      beta_ = add_weight("beta", shape,
                         {.initializer = options_.beta_initializer,
                          .regularizer = options_.beta_regularizer,
                          .dtype = dtype,
                          .autocast = false,
                          .constraint = options_.beta_constraint});
    }
  }

  // Undefined where the layer has none.
  Tensor gamma() const { return gamma_ ? gamma_.value() : Tensor(); }
  Tensor beta() const { return beta_ ? beta_.value() : Tensor(); }
  // Times gamma, plus beta, both of which have this shape.
  Tensor scaled(const Tensor& x, const Shape& shape) const {
    const Tensor output = gamma_ ? x * gamma_.value().reshape(shape) : x;
    return beta_ ? output + beta_.value().reshape(shape) : output;
  }

  Options options_;
  Variable gamma_;
  Variable beta_;
};

}  // namespace cohort::keras::layers
