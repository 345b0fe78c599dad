#include "cohort/keras/layers/base/layer_reader.h"

#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/keras/layers/base/layer_config.h"
#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::internal {
namespace {

using keras::layers::LayerHandle;

const std::vector<Named<LayerMaker>>& layer_classes() {
  static const std::vector<Named<LayerMaker>> all = {
      {"Activation", {}, read_activation_layer},
      {"Add", {}, read_add},
      {"AlphaDropout", {}, read_alpha_dropout},
      {"AdditiveAttention", {}, read_additive_attention},
      {"Attention", {}, read_attention},
      {"Average", {}, read_average},
      {"AveragePooling1D", {}, read_average_pooling1d},
      {"AveragePooling2D", {}, read_average_pooling2d},
      {"AveragePooling3D", {}, read_average_pooling3d},
      {"BatchNormalization", {}, read_batch_normalization},
      {"Bidirectional", {}, read_bidirectional},
      {"CategoryEncoding", {}, read_category_encoding},
      {"CenterCrop", {}, read_center_crop},
      {"Concatenate", {}, read_concatenate},
      {"Conv1D", {}, read_conv1d},
      {"Conv1DTranspose", {}, read_conv1d_transpose},
      {"Conv2D", {}, read_conv2d},
      {"Conv2DTranspose", {}, read_conv2d_transpose},
      {"Conv3D", {}, read_conv3d},
      {"Conv3DTranspose", {}, read_conv3d_transpose},
      {"Cropping1D", {}, read_cropping1d},
      {"Cropping2D", {}, read_cropping2d},
      {"Cropping3D", {}, read_cropping3d},
      {"Dense", {}, read_dense},
      {"DepthwiseConv1D", {}, read_depthwise_conv1d},
      {"DepthwiseConv2D", {}, read_depthwise_conv2d},
      {"Discretization", {}, read_discretization},
      {"Dot", {}, read_dot},
      {"Dropout", {}, read_dropout},
      {"ELU", {}, read_elu},
      {"EinsumDense", {}, read_einsum_dense},
      {"Embedding", {}, read_embedding},
      {"Flatten", {}, read_flatten},
      {"GRU", {}, read_gru},
      {"GaussianDropout", {}, read_gaussian_dropout},
      {"GaussianNoise", {}, read_gaussian_noise},
      {"GRUCell", {}, read_gru_cell},
      {"GlobalAveragePooling1D", {}, read_global_average_pooling1d},
      {"GlobalAveragePooling2D", {}, read_global_average_pooling2d},
      {"GlobalAveragePooling3D", {}, read_global_average_pooling3d},
      {"GlobalMaxPooling1D", {}, read_global_max_pooling1d},
      {"GlobalMaxPooling2D", {}, read_global_max_pooling2d},
      {"GlobalMaxPooling3D", {}, read_global_max_pooling3d},
      {"GroupNormalization", {}, read_group_normalization},
      {"HashedCrossing", {}, read_hashed_crossing},
      {"Hashing", {}, read_hashing},
      {"Identity", {}, read_identity},
      {"InputLayer", {}, read_input_layer},
      {"IntegerLookup", {}, read_integer_lookup},
      {"LSTM", {}, read_lstm},
      {"LSTMCell", {}, read_lstm_cell},
      {"LayerNormalization", {}, read_layer_normalization},
      {"LeakyReLU", {}, read_leaky_relu},
      {"Masking", {}, read_masking},
      {"MaxPooling1D", {}, read_max_pooling1d},
      {"MaxPooling2D", {}, read_max_pooling2d},
      {"MaxPooling3D", {}, read_max_pooling3d},
      {"Maximum", {}, read_maximum},
      {"Minimum", {}, read_minimum},
      {"MultiHeadAttention", {}, read_multi_head_attention},
      {"Multiply", {}, read_multiply},
      {"Normalization", {}, read_normalization},
      {"PReLU", {}, read_prelu},
      {"Permute", {}, read_permute},
      {"RNN", {}, read_rnn},
      {"RandomBrightness", {}, read_random_brightness},
      {"RandomContrast", {}, read_random_contrast},
      {"RandomCrop", {}, read_random_crop},
      {"RandomFlip", {}, read_random_flip},
      {"RandomRotation", {}, read_random_rotation},
      {"RandomTranslation", {}, read_random_translation},
      {"RandomZoom", {}, read_random_zoom},
      {"ReLU", {}, read_relu},
      {"RepeatVector", {}, read_repeat_vector},
      {"Rescaling", {}, read_rescaling},
      {"Reshape", {}, read_reshape},
      {"Resizing", {}, read_resizing},
      {"SeparableConv1D", {}, read_separable_conv1d},
      {"SeparableConv2D", {}, read_separable_conv2d},
      {"SimpleRNN", {}, read_simple_rnn},
      {"SimpleRNNCell", {}, read_simple_rnn_cell},
      {"Softmax", {}, read_softmax},
      {"SpatialDropout1D", {}, read_spatial_dropout1d},
      {"SpatialDropout2D", {}, read_spatial_dropout2d},
      {"SpatialDropout3D", {}, read_spatial_dropout3d},
      {"StringLookup", {}, read_string_lookup},
      {"Subtract", {}, read_subtract},
      {"TextVectorization", {}, read_text_vectorization},
      {"UpSampling1D", {}, read_up_sampling1d},
      {"UpSampling2D", {}, read_up_sampling2d},
      {"UpSampling3D", {}, read_up_sampling3d},
      {"ZeroPadding1D", {}, read_zero_padding1d},
      {"ZeroPadding2D", {}, read_zero_padding2d},
      {"ZeroPadding3D", {}, read_zero_padding3d},
      {"StackedRNNCells", {}, read_stacked_rnn_cells},
      {"TimeDistributed", {}, read_time_distributed},
  };
  return all;
}

// "layer 'dense' (Dense)" of what can be read, for errors.
std::string place_of(const Json& config, const std::string& class_name) {
  const auto name = config.find("name");
  const bool has_name = name != config.end() && name->is_string();
  return layer_place(has_name ? name->get<std::string>() : "?", class_name);
}

LayerHandle custom_layer(const LayerReader::Custom& make, const Json& config,
                         const std::string& where) {
  if (!make) {
    throw InvalidArgumentError(
        str(where,
            ": the function that .custom_objects has for this class is empty; "
            "give one that makes the layer of its configuration"));
  }
  try {
    const LayerHandle made = make(ConfigData::config_of(config));
    keras::layers::LayerOptions options;
    FieldReader(config).common(options);
    // Before it is built, for the function may not have passed it on. A class of Keras's may have
    // another than weights have.
    if (options.dtype && at::isFloatingType(options.dtype->compute_dtype())) {
      LayerState::of(*made.get()).policy = *options.dtype;
    }
    return made;
  } catch (...) {
    rethrow_with_context(where);
  }
}

// The number of a layer that stands in several places.
std::optional<int64_t> shared_number(const Json& json, const std::string& where) {
  std::optional<int64_t> number;
  if (!json.is_object()) return number;
  if (const auto found = json.find("shared_object_id"); found != json.end()) {
    read_field(*found, number, str(where, ": ", quoted("shared_object_id")));
  }
  return number;
}

// What whole_config has added, for what made the layer may know nothing of it. The layers of a
// model say themselves whether they are trainable.
void restore_what_all_layers_have(const LayerHandle& made, const Json& config,
                                  bool has_read_children) {
  FieldReader field(config);
  std::optional<std::string> name;
  std::optional<bool> trainable;
  field("name", name);
  field("trainable", trainable);
  LayerState& state = LayerState::of(*made.get());
  if (name) state.take_name(*name);
  if (!trainable || *trainable == state.trainable) return;
  if (has_read_children) {
    state.trainable = *trainable;
  } else {
    made.set_trainable(*trainable);
  }
}

bool is_model_class(std::string_view name) {
  return name == "Sequential" || name == "Functional" || name == "Model";
}

}  // namespace

bool is_keras_class(std::string_view class_name) {
  return is_model_class(class_name) || find_named(layer_classes(), class_name) != nullptr;
}

std::string layer_place(const std::string& name, const std::string& class_name) {
  return str("layer ", quoted(name), " (", class_name, ")");
}

LayerHandle LayerReader::layer(const Json& json, const std::string& where) {
  const std::optional<int64_t> number = shared_number(json, where);
  if (number) {
    if (const auto found = shared_.find(*number); found != shared_.end()) return found->second;
  }
  const ClassAndConfig parts = class_and_config(json, where);
  const LayerHandle made =
      make(parts, str(where, ": ", place_of(parts.config, parts.class_name)), where);
  if (number) shared_.emplace(*number, made);
  return made;
}

LayerHandle LayerReader::make(const ClassAndConfig& parts, const std::string& here,
                              const std::string& where) {
  bool has_read_children = false;
  const LayerHandle made = [&]() -> LayerHandle {
    if (is_custom(parts.class_name)) {
      return custom_layer(custom_.at(parts.class_name), parts.config, here);
    }
    if (const auto* found = find_named(layer_classes(), parts.class_name)) {
      return read_fields(parts.config, here, found->value, this);
    }
    if (const auto model = read_model(parts, here)) {
      has_read_children = true;
      return *model;
    }
    throw_unknown_name("class of layers (of your own ones give .custom_objects)", parts.class_name,
                       with_custom(names_of(layer_classes())), where);
  }();
  try {
    restore_what_all_layers_have(made, parts.config, has_read_children);
  } catch (...) {
    rethrow_with_context(here);
  }
  return made;
}

std::optional<LayerHandle> LayerReader::read_model(const ClassAndConfig& parts,
                                                   const std::string& here) {
  if (!is_model_class(parts.class_name)) return std::nullopt;
  throw InvalidArgumentError(str(here, ": a model stands where one layer is expected"));
}

namespace {

const Json& field_of_layers(FieldReader& field, const char* key) {
  const Json* const found = field.find(key);
  if (found == nullptr || field.layers() == nullptr) {
    throw InvalidArgumentError(str(quoted(key), " is missing"));
  }
  return *found;
}

}  // namespace

LayerHandle layer_field(FieldReader& field, const char* key) {
  const Json& json = field_of_layers(field, key);
  return field.layers()->layer(json, quoted(key));
}

std::vector<LayerHandle> layers_field(FieldReader& field, const char* key) {
  const Json& json = field_of_layers(field, key);
  if (!json.is_array()) throw_wrong_field(json, "a list of layers", quoted(key));
  std::vector<LayerHandle> layers;
  for (const Json& member : json) {
    layers.push_back(field.layers()->layer(member, str(quoted(key), "[", layers.size(), "]")));
  }
  return layers;
}

KnownNames LayerReader::with_custom(KnownNames known) const {
  for (const auto& [name, make] : custom_) {
    known.all.push_back(name);
    known.classes.push_back(name);
  }
  return known;
}

}  // namespace cohort::internal
