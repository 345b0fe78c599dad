// The fields that the configurations of layers over windows share. For sources of this room.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "cohort/keras/base/fields.h"

namespace cohort::keras::layers {

// Windows of one number or more; a list of one for sequences, as Keras writes them.
template <class Fields, class Size>
void window_field(Fields& field, const char* key, Size& size) {
  using Value = std::remove_cvref_t<Size>;
  if constexpr (std::is_same_v<Value, int64_t> || std::is_same_v<Value, std::optional<int64_t>>) {
    field.list_of_one(key, size);
  } else {
    field(key, size);
  }
}

// What comes before the options of weights.
template <class Fields, class Size, class Options>
void conv_window_fields(Fields& field, Size& kernel_size, Options& options) {
  window_field(field, "kernel_size", kernel_size);
  window_field(field, "strides", options.strides);
  field("padding", options.padding);
  field("data_format", options.data_format);
  if constexpr (requires { options.dilation_rate; }) {
    window_field(field, "dilation_rate", options.dilation_rate);
  }
  if constexpr (requires { options.depth_multiplier; }) {
    field("depth_multiplier", options.depth_multiplier);
  }
  if constexpr (requires { options.groups; }) {
    field("groups", options.groups);
  } else {
    field.always("groups", 1);
  }
  field("activation", options.activation);
  field("use_bias", options.use_bias);
}

template <class Fields, class Options>
void bias_fields(Fields& field, Options& options) {
  field("bias_initializer", options.bias_initializer);
  field("bias_regularizer", options.bias_regularizer);
  field("activity_regularizer", options.activity_regularizer);
  field("bias_constraint", options.bias_constraint);
}

template <class Fields, class Filters, class Size, class Options>
void conv_fields(Fields& field, Filters& filters, Size& kernel_size, Options& options) {
  field("filters", filters);
  conv_window_fields(field, kernel_size, options);
  field("kernel_initializer", options.kernel_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("kernel_constraint", options.kernel_constraint);
  bias_fields(field, options);
  if constexpr (requires { options.output_padding; }) {
    window_field(field, "output_padding", options.output_padding);
  }
}

template <class Fields, class Options>
void depthwise_fields(Fields& field, Options& options) {
  field("depthwise_initializer", options.depthwise_initializer);
  field("depthwise_regularizer", options.depthwise_regularizer);
  field("depthwise_constraint", options.depthwise_constraint);
}

}  // namespace cohort::keras::layers
