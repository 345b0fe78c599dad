// Layers on a simulated GPU: fit, weights, losses and predictions as on the CPU.
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <ostream>

#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using layers::LayerHandle;

enum class InputKind { kFlat, kImages, kSequences, kIds };

struct LayerCase {
  const char* name;
  InputKind input;
  std::function<std::vector<LayerHandle>()> make;
  const char* loss = "mse";

  friend std::ostream& operator<<(std::ostream& out, const LayerCase& one) { return out << one.name; }
};

Tensor make_input(InputKind kind) {
  switch (kind) {
    case InputKind::kFlat: return at::randn({16, 10});
    case InputKind::kImages: return at::randn({16, 12, 12, 3});
    case InputKind::kSequences: return at::randn({16, 6, 5});
    case InputKind::kIds: return at::randint(20, {16, 6}, at::kLong);
  }
  return {};
}

class GpuLayersTest : public ::testing::TestWithParam<LayerCase> {
 protected:
  // Weights, losses and predictions of a training by fit.
  std::vector<Tensor> train() const {
    const Sequential model(GetParam().make());
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-2}), .loss = GetParam().loss});
    const auto history =
        model.fit(x_, y_, {.batch_size = 8, .epochs = 2, .verbose = 0, .shuffle = false});
    auto all = values_of(model.weights());
    all.push_back(at::tensor(history["loss"]));
    all.push_back(model.predict(x_, {.batch_size = 8, .verbose = 0}).tensor());
    return all;
  }

 private:
  const testing::SimulatedGpus gpus_{2};
  const Tensor x_ = make_input(GetParam().input);
  const Tensor y_ = GetParam().loss == std::string("mse") ? at::randn({16, 2})
                                                          : at::randint(3, {16}, at::kLong);
};

TEST_P(GpuLayersTest, TrainAsOnTheCpu) {
  expect_same_on_gpu([&](const distribute::Strategy&) { return train(); });
}

TEST_P(GpuLayersTest, TrainAsOnTwoCpus) {
  expect_same_on_two_gpus([&](const distribute::Strategy&) { return train(); });
}

using Layers = std::vector<LayerHandle>;
namespace l = layers;

INSTANTIATE_TEST_SUITE_P(
    All, GpuLayersTest,
    ::testing::Values(
        LayerCase{"Dense", InputKind::kFlat,
             [] { return Layers{l::Dense(8, {.activation = "relu"}), l::Dense(2)}; }},
        LayerCase{"Discretization", InputKind::kFlat,
             [] {
               return Layers{l::Discretization({.bin_boundaries = {-1, 0, 1}, .output_mode = "count"}),
                             l::Dense(2)};
             }},
        LayerCase{"CategoryEncoding", InputKind::kIds,
             [] { return Layers{l::CategoryEncoding(20), l::Dense(2)}; }},
        LayerCase{"Hashing", InputKind::kIds,
             [] { return Layers{l::Hashing(7, {.output_mode = "count"}), l::Dense(2)}; }},
        LayerCase{"Conv2DAndPooling", InputKind::kImages,
             [] {
               return Layers{l::Conv2D(8, 3, {.activation = "relu"}), l::MaxPooling2D(),
                             l::Flatten(), l::Dense(2)};
             }},
        LayerCase{"Conv2DWithStrides", InputKind::kImages,
             [] {
               return Layers{l::Conv2D(8, 3, {.strides = 2, .padding = "same"}),
                             l::AveragePooling2D(), l::GlobalAveragePooling2D(), l::Dense(2)};
             }},
        LayerCase{"Conv2DTranspose", InputKind::kImages,
             [] {
               return Layers{l::Conv2DTranspose(4, 3, {.strides = 2}), l::GlobalMaxPooling2D(),
                             l::Dense(2)};
             }},
        LayerCase{"Conv1D", InputKind::kSequences,
             [] {
               return Layers{l::Conv1D(4, 3), l::MaxPooling1D(), l::Flatten(), l::Dense(2)};
             }},
        LayerCase{"BatchNormalization", InputKind::kImages,
             [] {
               return Layers{l::Conv2D(8, 3, {.use_bias = false}), l::BatchNormalization(),
                             l::ReLU(), l::GlobalAveragePooling2D(), l::Dense(2)};
             }},
        LayerCase{"LayerNormalization", InputKind::kFlat,
             [] { return Layers{l::Dense(8), l::LayerNormalization(), l::Dense(2)}; }},
        LayerCase{"Dropout", InputKind::kFlat,
             [] { return Layers{l::Dense(8), l::Dropout(0.5, {.seed = 3}), l::Dense(2)}; }},
        LayerCase{"Activations", InputKind::kFlat,
             [] {
               return Layers{l::Dense(8, {.activation = "gelu"}), l::LeakyReLU(), l::ELU(),
                             l::Activation("swish"), l::Dense(2, {.activation = "softmax"})};
             }},
        LayerCase{"Embedding", InputKind::kIds,
             [] { return Layers{l::Embedding(20, 4), l::Flatten(), l::Dense(2)}; }},
        LayerCase{"PooledEmbedding", InputKind::kIds,
             [] {
               return Layers{l::Embedding(20, 4), l::GlobalAveragePooling1D(), l::Dense(2)};
             }},
        LayerCase{"MaskedLSTM", InputKind::kIds,
             [] {
               return Layers{l::Embedding(20, 4, {.mask_zero = true}), l::LSTM(6), l::Dense(2)};
             }},
        LayerCase{"LSTM", InputKind::kSequences, [] { return Layers{l::LSTM(6), l::Dense(2)}; }},
        LayerCase{"GRUAndSimpleRNN", InputKind::kSequences,
             [] {
               return Layers{l::GRU(6, {.return_sequences = true}), l::SimpleRNN(4), l::Dense(2)};
             }},
        LayerCase{"Bidirectional", InputKind::kSequences,
             [] { return Layers{l::Bidirectional(l::LSTM(6)), l::Dense(2)}; }},
        LayerCase{"RescalingAndReshape", InputKind::kFlat,
             [] {
               return Layers{l::Rescaling(0.5), l::Reshape({5, 2}), l::Flatten(), l::Dense(2)};
             }},
        LayerCase{"Regularizer", InputKind::kFlat,
             [] {
               return Layers{l::Dense(8, {.kernel_regularizer = "l2"}), l::Dense(2)};
             }},
        LayerCase{"SparseCrossentropy", InputKind::kFlat,
             [] { return Layers{l::Dense(8), l::Dense(3, {.activation = "softmax"})}; },
             "sparse_categorical_crossentropy"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GpuLayers, MultiHeadAttentionTrainsAsOnTheCpu) {
  const testing::SimulatedGpus gpus(1);
  at::manual_seed(5);
  const Tensor x = at::randn({16, 6, 5}), y = at::randn({16, 2});
  expect_same_on_gpu([&](const distribute::Strategy&) {
    const auto in = Input({6, 5});
    const auto attended = layers::MultiHeadAttention(2, 4)({in, in});
    const Functional model(
        in, layers::Dense(2)(layers::GlobalAveragePooling1D()(layers::Add()({attended, in}))));
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 1e-2}), .loss = "mse"});
    model.fit(x, y, {.batch_size = 8, .epochs = 2, .verbose = 0, .shuffle = false});
    return values_of(model.weights());
  });
}

}  // namespace
}  // namespace cohort::keras
