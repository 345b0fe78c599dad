// The fields that the configurations of convolutions share. For sources only.
#pragma once

#include "cohort/keras/base/fields.h"

namespace cohort::keras::layers {

// Windows of one number or two; a list of one for sequences, as Keras writes them.
template <class Fields, class Filters, class Size, class Options>
void conv_fields(Fields& field, Filters& filters, Size& kernel_size, Options& options) {
  const auto window = [&field](const char* key, auto& size) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(size)>, int64_t>) {
      field.list_of_one(key, size);
    } else {
      field(key, size);
    }
  };
  field("filters", filters);
  window("kernel_size", kernel_size);
  window("strides", options.strides);
  field("padding", options.padding);
  field.always("data_format", "channels_last");
  window("dilation_rate", options.dilation_rate);
  field.always("groups", 1);
  field("activation", options.activation);
  field("use_bias", options.use_bias);
  field("kernel_initializer", options.kernel_initializer);
  field("bias_initializer", options.bias_initializer);
  field("kernel_regularizer", options.kernel_regularizer);
  field("bias_regularizer", options.bias_regularizer);
  field("activity_regularizer", options.activity_regularizer);
  field.always("kernel_constraint", nullptr);
  field.always("bias_constraint", nullptr);
}

}  // namespace cohort::keras::layers
