#include "keras_models.h"

#include <ATen/ops/zeros.h>

namespace bench {
namespace {

namespace tf = cohort;
namespace layers = cohort::keras::layers;
using tf::keras::SymbolicTensor;

tf::keras::ModelHandle make_lstm() {
  const tf::keras::Sequential lstm({layers::LSTM(128), layers::Dense(10)});
  lstm(at::zeros({1, 32, 64}));  // builds it
  return lstm;
}

SymbolicTensor convolve(const SymbolicTensor& inputs, int64_t filters, int64_t size,
                        int64_t stride) {
  const layers::Conv2D convolution(filters, size,
                                   {.strides = stride, .padding = "same", .use_bias = false});
  return layers::BatchNormalization()(convolution(inputs));
}

SymbolicTensor residual_block(const SymbolicTensor& inputs, int64_t filters, int64_t stride,
                              bool widens) {
  const SymbolicTensor first = layers::ReLU()(convolve(inputs, filters, 3, stride));
  const SymbolicTensor inside = convolve(first, filters, 3, 1);
  const SymbolicTensor beside = widens ? convolve(inputs, filters, 1, stride) : inputs;
  return layers::ReLU()(layers::Add()({inside, beside}));
}

tf::keras::ModelHandle make_resnet() {
  const auto images = tf::keras::Input({32, 32, 3});
  SymbolicTensor inside = layers::ReLU()(convolve(images, 64, 3, 1));
  int64_t in = 64;
  for (const int64_t filters : {64, 128, 256, 512}) {
    for (const int64_t stride : {filters == 64 ? 1 : 2, 1}) {
      inside = residual_block(inside, filters, stride, filters != in);
      in = filters;
    }
  }
  return tf::keras::Functional(images, layers::Dense(10)(layers::GlobalAveragePooling2D()(inside)));
}

}  // namespace

std::optional<tf::keras::ModelHandle> make_keras_model(const std::string& name) {
  if (name == "lstm") return make_lstm();
  if (name == "resnet") return make_resnet();
  return std::nullopt;
}

}  // namespace bench
