// What layers write of themselves, and how they are made of it again. For sources only: it includes
// nlohmann-json.
#pragma once

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/fields.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::internal {

// The configuration of a layer that writes its `fields` with a FieldWriter; whole_config adds what
// all layers have. Errors: Unimplemented (a function of the program).
template <class Fields>
keras::Config layer_config(const keras::layers::Layer& layer, const Fields& fields) {
  FieldWriter writer;
  writer("dtype", layer.dtype_policy());
  fields(writer);
  return ConfigData::config_of(std::move(writer.json));
}
inline keras::Config plain_layer_config(const keras::layers::Layer& layer) {
  return layer_config(layer, [](FieldWriter&) {});
}

// Make layers of the fields of their configurations. Errors: InvalidArgument, Unimplemented.
using LayerMaker = keras::layers::LayerHandle (*)(FieldReader& field);
keras::layers::LayerHandle read_activation_layer(FieldReader& field);
keras::layers::LayerHandle read_add(FieldReader& field);
keras::layers::LayerHandle read_alpha_dropout(FieldReader& field);
keras::layers::LayerHandle read_additive_attention(FieldReader& field);
keras::layers::LayerHandle read_attention(FieldReader& field);
keras::layers::LayerHandle read_average(FieldReader& field);
keras::layers::LayerHandle read_average_pooling1d(FieldReader& field);
keras::layers::LayerHandle read_average_pooling2d(FieldReader& field);
keras::layers::LayerHandle read_average_pooling3d(FieldReader& field);
keras::layers::LayerHandle read_batch_normalization(FieldReader& field);
keras::layers::LayerHandle read_bidirectional(FieldReader& field);
keras::layers::LayerHandle read_category_encoding(FieldReader& field);
keras::layers::LayerHandle read_center_crop(FieldReader& field);
keras::layers::LayerHandle read_concatenate(FieldReader& field);
keras::layers::LayerHandle read_conv1d(FieldReader& field);
keras::layers::LayerHandle read_conv1d_transpose(FieldReader& field);
keras::layers::LayerHandle read_conv2d(FieldReader& field);
keras::layers::LayerHandle read_conv2d_transpose(FieldReader& field);
keras::layers::LayerHandle read_conv3d(FieldReader& field);
keras::layers::LayerHandle read_conv3d_transpose(FieldReader& field);
keras::layers::LayerHandle read_cropping1d(FieldReader& field);
keras::layers::LayerHandle read_cropping2d(FieldReader& field);
keras::layers::LayerHandle read_cropping3d(FieldReader& field);
keras::layers::LayerHandle read_dense(FieldReader& field);
keras::layers::LayerHandle read_depthwise_conv1d(FieldReader& field);
keras::layers::LayerHandle read_depthwise_conv2d(FieldReader& field);
keras::layers::LayerHandle read_discretization(FieldReader& field);
keras::layers::LayerHandle read_dot(FieldReader& field);
keras::layers::LayerHandle read_dropout(FieldReader& field);
keras::layers::LayerHandle read_einsum_dense(FieldReader& field);
keras::layers::LayerHandle read_elu(FieldReader& field);
keras::layers::LayerHandle read_embedding(FieldReader& field);
keras::layers::LayerHandle read_flatten(FieldReader& field);
keras::layers::LayerHandle read_gaussian_dropout(FieldReader& field);
keras::layers::LayerHandle read_gaussian_noise(FieldReader& field);
keras::layers::LayerHandle read_global_average_pooling1d(FieldReader& field);
keras::layers::LayerHandle read_global_average_pooling2d(FieldReader& field);
keras::layers::LayerHandle read_global_average_pooling3d(FieldReader& field);
keras::layers::LayerHandle read_global_max_pooling1d(FieldReader& field);
keras::layers::LayerHandle read_global_max_pooling2d(FieldReader& field);
keras::layers::LayerHandle read_global_max_pooling3d(FieldReader& field);
keras::layers::LayerHandle read_group_normalization(FieldReader& field);
keras::layers::LayerHandle read_gru(FieldReader& field);
keras::layers::LayerHandle read_gru_cell(FieldReader& field);
keras::layers::LayerHandle read_hashed_crossing(FieldReader& field);
keras::layers::LayerHandle read_hashing(FieldReader& field);
keras::layers::LayerHandle read_identity(FieldReader& field);
keras::layers::LayerHandle read_input_layer(FieldReader& field);
keras::layers::LayerHandle read_integer_lookup(FieldReader& field);
keras::layers::LayerHandle read_layer_normalization(FieldReader& field);
keras::layers::LayerHandle read_leaky_relu(FieldReader& field);
keras::layers::LayerHandle read_lstm(FieldReader& field);
keras::layers::LayerHandle read_lstm_cell(FieldReader& field);
keras::layers::LayerHandle read_masking(FieldReader& field);
keras::layers::LayerHandle read_max_pooling1d(FieldReader& field);
keras::layers::LayerHandle read_max_pooling2d(FieldReader& field);
keras::layers::LayerHandle read_max_pooling3d(FieldReader& field);
keras::layers::LayerHandle read_maximum(FieldReader& field);
keras::layers::LayerHandle read_minimum(FieldReader& field);
keras::layers::LayerHandle read_multi_head_attention(FieldReader& field);
keras::layers::LayerHandle read_multiply(FieldReader& field);
keras::layers::LayerHandle read_normalization(FieldReader& field);
keras::layers::LayerHandle read_permute(FieldReader& field);
keras::layers::LayerHandle read_prelu(FieldReader& field);
keras::layers::LayerHandle read_random_brightness(FieldReader& field);
keras::layers::LayerHandle read_random_contrast(FieldReader& field);
keras::layers::LayerHandle read_random_crop(FieldReader& field);
keras::layers::LayerHandle read_random_flip(FieldReader& field);
keras::layers::LayerHandle read_random_rotation(FieldReader& field);
keras::layers::LayerHandle read_random_translation(FieldReader& field);
keras::layers::LayerHandle read_random_zoom(FieldReader& field);
keras::layers::LayerHandle read_relu(FieldReader& field);
keras::layers::LayerHandle read_repeat_vector(FieldReader& field);
keras::layers::LayerHandle read_rescaling(FieldReader& field);
keras::layers::LayerHandle read_reshape(FieldReader& field);
keras::layers::LayerHandle read_resizing(FieldReader& field);
keras::layers::LayerHandle read_separable_conv1d(FieldReader& field);
keras::layers::LayerHandle read_separable_conv2d(FieldReader& field);
keras::layers::LayerHandle read_rnn(FieldReader& field);
keras::layers::LayerHandle read_simple_rnn(FieldReader& field);
keras::layers::LayerHandle read_simple_rnn_cell(FieldReader& field);
keras::layers::LayerHandle read_softmax(FieldReader& field);
keras::layers::LayerHandle read_spatial_dropout1d(FieldReader& field);
keras::layers::LayerHandle read_spatial_dropout2d(FieldReader& field);
keras::layers::LayerHandle read_spatial_dropout3d(FieldReader& field);
keras::layers::LayerHandle read_string_lookup(FieldReader& field);
keras::layers::LayerHandle read_subtract(FieldReader& field);
keras::layers::LayerHandle read_text_vectorization(FieldReader& field);
keras::layers::LayerHandle read_up_sampling1d(FieldReader& field);
keras::layers::LayerHandle read_up_sampling2d(FieldReader& field);
keras::layers::LayerHandle read_up_sampling3d(FieldReader& field);
keras::layers::LayerHandle read_zero_padding1d(FieldReader& field);
keras::layers::LayerHandle read_zero_padding2d(FieldReader& field);
keras::layers::LayerHandle read_zero_padding3d(FieldReader& field);
keras::layers::LayerHandle read_stacked_rnn_cells(FieldReader& field);
keras::layers::LayerHandle read_time_distributed(FieldReader& field);

}  // namespace cohort::internal
