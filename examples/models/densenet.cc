#include "models/densenet.h"

#include "models/gratings.h"

namespace models {
namespace {

namespace tf = cohort;
namespace layers = tf::keras::layers;
using tf::keras::SymbolicTensor;

SymbolicTensor normalize(const DenseNetConfig& config, const SymbolicTensor& x) {
  return layers::ReLU()(layers::BatchNormalization({.synchronized = config.synchronized})(x));
}

SymbolicTensor convolve(const SymbolicTensor& x, int64_t filters, int64_t size) {
  return layers::Conv2D(filters, size, {.padding = "same", .use_bias = false})(x);
}

// The bottleneck, 1x1, keeps the work of a layer the same however many channels it reads.
SymbolicTensor dense_layer(const DenseNetConfig& config, const SymbolicTensor& x) {
  const SymbolicTensor narrow = convolve(normalize(config, x), 4 * config.growth, 1);
  const SymbolicTensor more = convolve(normalize(config, narrow), config.growth, 3);
  return layers::Concatenate()({x, more});
}

SymbolicTensor transition(const DenseNetConfig& config, const SymbolicTensor& x) {
  const auto filters =
      static_cast<int64_t>(static_cast<double>(x.shape().back()) * config.reduction);
  return layers::AveragePooling2D()(convolve(normalize(config, x), filters, 1));
}

}  // namespace

tf::keras::ModelHandle make_densenet(const DenseNetConfig& config) {
  const auto images =
      tf::keras::Input({config.image_size, config.image_size, 3}, {.name = "images"});
  SymbolicTensor x = convolve(images, 2 * config.growth, 3);
  for (size_t block = 0; block < config.blocks.size(); ++block) {
    if (block > 0) x = transition(config, x);
    for (int64_t layer = 0; layer < config.blocks[block]; ++layer) x = dense_layer(config, x);
  }
  x = layers::GlobalAveragePooling2D()(normalize(config, x));
  return tf::keras::Functional(images, layers::Dense(config.classes)(x));
}

Example densenet_example(const DenseNetConfig& config) {
  return {.name = "densenet",
          .description = "DenseNet-BC on images of gratings, whose direction it names.",
          .train_rows = 768,
          .test_rows = 128,
          .epochs = 4,
          .batch = 32,
          .make_optimizer =
              [] {
                return tf::keras::optimizers::SGD(
                    {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true});
              },
          .make_model = [config] { return make_densenet(config); },
          .make_rows =
              [config](int64_t rows, uint64_t seed) {
                return make_gratings(
                    rows, {.size = config.image_size, .directions = config.classes, .seed = seed});
              },
          .loss = tf::keras::losses::SparseCategoricalCrossentropy({.from_logits = true}),
          .metric = "accuracy"};
}

}  // namespace models
