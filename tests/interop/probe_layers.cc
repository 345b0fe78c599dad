// Layers: what they make of inputs, from given weights, and their gradients.
#include <ATen/ops/arange.h>
#include <cohort/cohort.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "probe.h"
#include "tensor_json.h"

namespace cohort::interop {
namespace {

namespace layers = keras::layers;
using layers::LayerHandle;

template <class Options>
Options window_options(const Json& o) {
  Options options;
  if (o.contains("strides")) options.strides = o.at("strides").get<int64_t>();
  options.padding = o.value("padding", "valid");
  return options;
}

template <class Options>
Options recurrent_options(const Json& o) {
  Options options;
  options.activation = o.value("activation", "tanh");
  options.dropout = o.value("dropout", 0.0);
  options.recurrent_dropout = o.value("recurrent_dropout", 0.0);
  options.use_bias = o.value("use_bias", true);
  options.return_sequences = o.value("return_sequences", false);
  options.go_backwards = o.value("go_backwards", false);
  options.stateful = o.value("stateful", false);
  if constexpr (requires { options.reset_after; }) {
    options.reset_after = o.value("reset_after", true);
  }
  return options;
}

LayerHandle make_recurrent(const std::string& name, const Json& o) {
  const auto units = o.at("units").get<int64_t>();
  if (name == "LSTM") return layers::LSTM(units, recurrent_options<layers::LSTMOptions>(o));
  if (name == "GRU") return layers::GRU(units, recurrent_options<layers::GRUOptions>(o));
  return layers::SimpleRNN(units, recurrent_options<layers::SimpleRNNOptions>(o));
}

layers::Conv2DTransposeOptions conv2d_transpose_options(const Json& o) {
  layers::Conv2DTransposeOptions options;
  if (o.contains("strides")) options.strides = o.at("strides").get<int64_t>();
  if (o.contains("output_padding")) {
    const auto added = o.at("output_padding").get<std::vector<int64_t>>();
    options.output_padding = layers::Size2D(added[0], added[1]);
  }
  if (o.contains("dilation_rate")) options.dilation_rate = o.at("dilation_rate").get<int64_t>();
  options.padding = o.value("padding", "valid");
  options.activation = o.value("activation", "linear");
  options.use_bias = o.value("use_bias", true);
  return options;
}

LayerHandle make_attention(const Json& o) {
  layers::MultiHeadAttentionOptions options{.use_bias = o.value("use_bias", true),
                                            .use_causal_mask = o.value("use_causal_mask", false)};
  if (o.contains("value_dim")) options.value_dim = o.at("value_dim").get<int64_t>();
  if (o.contains("output_shape")) options.output_dim = o.at("output_shape").get<int64_t>();
  return layers::MultiHeadAttention(o.at("num_heads").get<int64_t>(),
                                    o.at("key_dim").get<int64_t>(), options);
}

LayerHandle make_layer(const std::string& name, const Json& o) {
  const std::map<std::string, std::function<LayerHandle()>> known = {
      {"Activation", [&] { return layers::Activation(o.at("activation").get<std::string>()); }},
      {"Dense",
       [&] {
         return layers::Dense(o.at("units").get<int64_t>(),
                              {.activation = o.value("activation", "linear")});
       }},
      {"BatchNormalization",
       [&] {
         return layers::BatchNormalization({.axis = o.value("axis", int64_t{-1}),
                                            .momentum = o.value("momentum", 0.99),
                                            .epsilon = o.value("epsilon", 1e-3),
                                            .center = o.value("center", true),
                                            .scale = o.value("scale", true),
                                            .synchronized = o.value("synchronized", false)});
       }},
      {"LayerNormalization",
       [&] {
         return layers::LayerNormalization({.axis = o.value("axis", std::vector<int64_t>{-1}),
                                            .epsilon = o.value("epsilon", 1e-3)});
       }},
      {"Conv1D",
       [&] {
         return layers::Conv1D(o.at("filters").get<int64_t>(), o.at("kernel_size").get<int64_t>(),
                               {.strides = o.value("strides", int64_t{1}),
                                .padding = o.value("padding", "valid"),
                                .dilation_rate = o.value("dilation_rate", int64_t{1}),
                                .activation = o.value("activation", "linear")});
       }},
      {"MaxPooling1D",
       [&] {
         return layers::MaxPooling1D(o.value("pool_size", int64_t{2}),
                                     window_options<layers::Pooling1DOptions>(o));
       }},
      {"AveragePooling1D",
       [&] {
         return layers::AveragePooling1D(o.value("pool_size", int64_t{2}),
                                         window_options<layers::Pooling1DOptions>(o));
       }},
      {"AveragePooling2D",
       [&] {
         return layers::AveragePooling2D(o.value("pool_size", int64_t{2}),
                                         window_options<layers::Pooling2DOptions>(o));
       }},
      {"GlobalMaxPooling1D",
       [&] { return layers::GlobalMaxPooling1D({.keepdims = o.value("keepdims", false)}); }},
      {"GlobalAveragePooling1D",
       [&] { return layers::GlobalAveragePooling1D({.keepdims = o.value("keepdims", false)}); }},
      {"GlobalMaxPooling2D",
       [&] { return layers::GlobalMaxPooling2D({.keepdims = o.value("keepdims", false)}); }},
      {"GlobalAveragePooling2D",
       [&] { return layers::GlobalAveragePooling2D({.keepdims = o.value("keepdims", false)}); }},
      {"Add", [] { return layers::Add(); }},
      {"Subtract", [] { return layers::Subtract(); }},
      {"Multiply", [] { return layers::Multiply(); }},
      {"Average", [] { return layers::Average(); }},
      {"Maximum", [] { return layers::Maximum(); }},
      {"Minimum", [] { return layers::Minimum(); }},
      {"Concatenate", [&] { return layers::Concatenate({.axis = o.value("axis", int64_t{-1})}); }},
      {"Rescaling",
       [&] {
         return layers::Rescaling(o.at("scale").get<double>(), {.offset = o.value("offset", 0.0)});
       }},
      {"ReLU",
       [&] {
         layers::ReLUOptions options{.negative_slope = o.value("negative_slope", 0.0),
                                     .threshold = o.value("threshold", 0.0)};
         if (o.contains("max_value")) options.max_value = o.at("max_value").get<double>();
         return layers::ReLU(options);
       }},
      {"LeakyReLU", [&] { return layers::LeakyReLU(o.value("alpha", 0.3)); }},
      {"ELU", [&] { return layers::ELU(o.value("alpha", 1.0)); }},
      {"Softmax",
       [&] { return layers::Softmax({.axis = o.value("axis", std::vector<int64_t>{-1})}); }},
      {"Conv2DTranspose",
       [&] {
         const auto size = o.at("kernel_size").get<std::vector<int64_t>>();
         return layers::Conv2DTranspose(o.at("filters").get<int64_t>(), {size[0], size[1]},
                                        conv2d_transpose_options(o));
       }},
      {"Dot",
       [&] {
         const auto axes = o.at("axes").get<std::vector<int64_t>>();
         return layers::Dot({axes[0], axes[1]}, {.normalize = o.value("normalize", false)});
       }},
      {"SimpleRNN", [&] { return make_recurrent(name, o); }},
      {"LSTM", [&] { return make_recurrent(name, o); }},
      {"GRU", [&] { return make_recurrent(name, o); }},
      {"Bidirectional",
       [&] {
         layers::BidirectionalOptions options{.merge_mode = o.value("merge_mode", "concat")};
         if (o.contains("backward")) {
           const Json& backward = o.at("backward");
           options.backward_layer = make_recurrent(backward.at("layer"), backward);
         }
         return layers::Bidirectional(make_recurrent(o.at("layer"), o), options);
       }},
      {"MultiHeadAttention", [&] { return make_attention(o); }},
  };
  const auto found = known.find(name);
  if (found == known.end()) throw InvalidArgumentError("no layer '" + name + "'");
  return found->second();
}

// A weighted sum of all elements, so that each has a gradient of its own.
Tensor mixed(const Tensor& output) {
  const Tensor weights = at::arange(output.numel(), output.options()).cos();
  return (output * weights.reshape(output.sizes())).sum();
}

Json weights_json(const std::vector<Tensor>& weights) {
  Json json = Json::array();
  for (const Tensor& weight : weights) json.push_back(json_of(weight));
  return json;
}

}  // namespace

Json run_layer(const Json& request) {
  const LayerHandle layer = make_layer(request.at("layer"), request.at("options"));
  std::vector<Tensor> inputs;
  std::vector<Structure> members;
  for (const Json& input : request.at("inputs")) {
    inputs.push_back(tensor_of(input));
    members.emplace_back(inputs.back());
  }
  const layers::Masking masking(1.);
  const auto masked = [&]() -> Structure {
    if (!request.at("masked").get<bool>()) {
      return members.size() == 1 ? members[0] : Structure::make_tuple(members);
    }
    return masking(members[0]);
  };
  layer(masked());  // builds it
  std::vector<Tensor> weights;
  for (const Json& weight : request.at("weights")) weights.push_back(tensor_of(weight));
  layer.set_weights(weights);

  layer.reset_states();
  for (const Json& batch : request.value("earlier", Json::array())) layer(tensor_of(batch));
  keras::CallOptions options{.training = request.at("training").get<bool>()};
  if (request.contains("mask")) options.mask = tensor_of(request.at("mask")).to(boolean);

  GradientTape tape;
  for (const Tensor& input : inputs) tape.watch(input);
  const keras::Sequential model({layer});
  const LayerHandle called = request.value("in_model", false) ? model : layer;
  const Tensor output = called(masked(), options).tensor();
  std::vector<Tensor> sources = inputs;
  for (const Variable& variable : layer.trainable_variables()) sources.push_back(variable.value());
  const auto gradients =
      tape.gradient(mixed(output), sources, {.unconnected_gradients = UnconnectedGradients::ZERO});
  return {{"output", json_of(output)},
          {"gradients", weights_json(gradients)},
          {"weights", weights_json(layer.get_weights())},
          {"explain", model.explain()}};
}

Json adapt_normalization(const Json& request) {
  const layers::Normalization layer({.axis = request.at("axis").get<std::vector<int64_t>>(),
                                     .invert = request.value("invert", false)});
  const Tensor data = tensor_of(request.at("data"));
  layer.adapt(
      data::Dataset::from_tensor_slices(data).batch(request.at("batch_size").get<int64_t>()));
  return {{"weights", weights_json(layer.get_weights())}, {"output", json_of(layer(data))}};
}

}  // namespace cohort::interop
