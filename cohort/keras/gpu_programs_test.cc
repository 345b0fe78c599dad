// 200 random programs on simulated GPUs: what they train is what they train on the CPU. A program's seed is
// its number.
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using layers::LayerHandle;
using optimizers::Optimizer;
namespace l = layers;

constexpr int kPrograms = 200;
constexpr int64_t kRows = 12;

// Choices that depend on the seed alone, on every platform (splitmix64).
class Choices {
 public:
  explicit Choices(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15) {}

  int64_t below(int64_t count) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(count));
  }
  bool one_in(int64_t count) { return below(count) == 0; }
  template <class Value>
  Value of(std::initializer_list<Value> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }

 private:
  uint64_t state_;
};

enum class Form { kFlat, kImages, kSequences, kIds };

Tensor make_inputs(Form form) {
  switch (form) {
    case Form::kFlat:
      return at::randn({kRows, 6});
    case Form::kImages:
      return at::randn({kRows, 6, 6, 2});
    case Form::kSequences:
      return at::randn({kRows, 5, 3});
    case Form::kIds:
      return at::randint(9, {kRows, 5}, at::kLong);
  }
  return {};
}

const char* any_activation(Choices& choose) {
  return choose.of({"relu", "tanh", "sigmoid", "gelu", "swish", "elu", "softplus", "linear"});
}

// What normalization takes away from a layer's outputs must have no gradient: it would be noise, of
// which some optimizers take the sign. So no bias is added right before.
std::vector<LayerHandle> flat_layers(Choices& choose) {
  switch (choose.below(6)) {
    case 0:
      return {l::Activation("tanh"), l::Dense(1 + choose.below(6), {.use_bias = false}),
              l::BatchNormalization()};
    case 1:
      return {l::LayerNormalization()};
    case 2:
      return {l::Dropout(0.3, {.seed = static_cast<uint64_t>(choose.below(100))})};
    case 3:
      return {l::LeakyReLU()};
    case 4:
      return {l::Dense(1 + choose.below(6),
                       {.activation = any_activation(choose), .kernel_regularizer = "l2"})};
    default:
      return {l::Dense(1 + choose.below(6), {.activation = any_activation(choose)})};
  }
}

LayerHandle sequence_to_row(Choices& choose) {
  switch (choose.below(6)) {
    case 0:
      return l::LSTM(1 + choose.below(4));
    case 1:
      return l::GRU(1 + choose.below(4));
    case 2:
      return l::SimpleRNN(1 + choose.below(4));
    case 3:
      return l::Bidirectional(l::LSTM(2));
    case 4:
      return l::GlobalMaxPooling1D();
    default:
      return l::GlobalAveragePooling1D();
  }
}

std::vector<LayerHandle> make_layers(Choices& choose, Form form) {
  std::vector<LayerHandle> all;
  if (form == Form::kImages) {
    const bool is_normalized = choose.one_in(2);
    all.push_back(l::Conv2D(1 + choose.below(4), choose.of({1, 3}),
                            {.padding = choose.of({"same", "valid"}),
                             .activation = is_normalized ? "linear" : any_activation(choose),
                             .use_bias = !is_normalized}));
    if (is_normalized) all.push_back(l::BatchNormalization());
    if (choose.one_in(2)) all.push_back(l::MaxPooling2D());
    if (choose.one_in(2)) {
      all.push_back(l::GlobalAveragePooling2D());
    } else {
      all.push_back(l::Flatten());
    }
  }
  if (form == Form::kIds) all.push_back(l::Embedding(9, 3, {.mask_zero = choose.one_in(2)}));
  if (form == Form::kSequences && choose.one_in(2)) {
    all.push_back(l::Conv1D(1 + choose.below(4), 3, {.padding = "same"}));
  }
  if (form == Form::kSequences || form == Form::kIds) all.push_back(sequence_to_row(choose));
  for (int64_t i = choose.below(3); i > 0; --i) {
    for (const LayerHandle& layer : flat_layers(choose)) all.push_back(layer);
  }
  all.push_back(l::Dense(3));
  return all;
}

// At most one kind of clipping, and whatever else there is.
template <class Options>
Options with_common(Choices& choose, Options options) {
  switch (choose.below(6)) {
    case 0:
      options.clipnorm = 0.1;
      break;
    case 1:
      options.clipvalue = 0.05;
      break;
    case 2:
      options.global_clipnorm = 0.2;
      break;
    default:
      break;
  }
  if (choose.one_in(4)) options.weight_decay = 0.01;
  if (choose.one_in(4)) options.use_ema = true;
  if (choose.one_in(4)) options.gradient_accumulation_steps = 2;
  if (choose.one_in(4)) options.not_finite = optimizers::NotFinite::SKIP;
  return options;
}

Optimizer make_optimizer(Choices& choose) {
  using namespace optimizers;
  const double rate = choose.of({0.01, 0.03});
  switch (choose.below(9)) {
    case 0:
      return SGD(with_common(choose, SGDOptions{.learning_rate = rate}));
    case 1:
      return SGD(with_common(
          choose,
          SGDOptions{.learning_rate = rate, .momentum = 0.9, .nesterov = choose.one_in(2)}));
    case 2:
      return Adam(
          with_common(choose, AdamOptions{.learning_rate = rate, .amsgrad = choose.one_in(2)}));
    case 3:
      return RMSprop(with_common(choose, RMSpropOptions{.learning_rate = rate}));
    case 4:
      return Adagrad(with_common(choose, AdagradOptions{.learning_rate = rate}));
    case 5:
      return Adamax(with_common(choose, AdamaxOptions{.learning_rate = rate}));
    case 6:
      return Nadam(with_common(choose, NadamOptions{.learning_rate = rate}));
    case 7:
      return Lion(with_common(choose, LionOptions{.learning_rate = rate / 10}));
    default:
      return Ftrl(with_common(choose, FtrlOptions{.learning_rate = rate}));
  }
}

// Operations between what a model gives and its loss, with tensors that the step makes.
Tensor transformed(const Tensor& scores, const std::vector<int64_t>& operations) {
  Tensor x = scores;
  for (const int64_t operation : operations) {
    switch (operation) {
      case 0:
        x = x * constant({1.f, 0.5f, 2.f});
        break;
      case 1:
        x = x + random::normal({3});
        break;
      case 2:
        x = x - x.mean(1, true);
        break;
      case 3:
        x = x.clamp(-3, 3);
        break;
      case 4:
        x = x + ones({3});
        break;
      case 5:
        x = x.softmax(1);
        break;
      case 6:
        x = x.matmul(eye(3));
        break;
      default:
        x = x.abs().add(0.1).log();
        break;
    }
  }
  return x;
}

class Program {
 public:
  explicit Program(uint64_t seed) : choose_(seed) {}

  // Weights, the optimizer's variables, and losses.
  std::vector<Tensor> run(const distribute::Strategy& strategy) {
    at::manual_seed(3);
    const Form form = choose_.of({Form::kFlat, Form::kImages, Form::kSequences, Form::kIds});
    const Tensor x = make_inputs(form), y = at::randn({kRows, 3});
    const Sequential model(make_layers(choose_, form));
    const Optimizer optimizer = make_optimizer(choose_);
    std::vector<Tensor> values;
    if (choose_.one_in(2)) {
      model.compile({.optimizer = optimizer, .loss = choose_.of({"mse", "mae", "huber"})});
      const auto history =
          model.fit(x, y, {.batch_size = 4, .epochs = 2, .verbose = 0, .shuffle = false});
      values.push_back(at::tensor(history["loss"]));
    } else {
      values.push_back(loop(strategy, model, optimizer, x, y));
    }
    for (const Tensor& value : values_of(model.weights())) values.push_back(value);
    for (const Tensor& value : values_of(optimizer.variables())) values.push_back(value);
    return values;
  }

 private:
  Tensor loop(const distribute::Strategy& strategy, const Sequential& model,
              const Optimizer& optimizer, const Tensor& x, const Tensor& y) {
    std::vector<int64_t> operations;
    for (int64_t i = choose_.below(4); i > 0; --i) operations.push_back(choose_.below(8));
    const bool minimizes = choose_.one_in(2);
    const auto dataset = strategy.experimental_distribute_dataset(
        data::Dataset::from_tensor_slices(tuple(x, y)).batch(4));
    std::vector<double> losses;
    for (const auto& batch : dataset) {
      const auto step = strategy.run(
          [&](const Tensor& xs, const Tensor& ys) {
            GradientTape tape;
            const Tensor scores = transformed(model(xs, {.training = true}), operations);
            const Tensor loss = at::mse_loss(scores, ys) / strategy.num_replicas_in_sync();
            const auto variables = model.trainable_variables();
            if (minimizes) {
              optimizer.minimize(loss, variables, tape);
            } else {
              optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables));
            }
            return loss;
          },
          batch);
      losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, step).item<double>());
    }
    return at::tensor(losses);
  }

  Choices choose_;
};

class GpuProgramsTest : public ::testing::TestWithParam<int> {};

TEST_P(GpuProgramsTest, TrainAsOnTheCpu) {
  const testing::SimulatedGpus gpus(2);
  const auto seed = static_cast<uint64_t>(GetParam());
  const auto train = [&](const distribute::Strategy& strategy) {
    return Program(seed).run(strategy);
  };
  if (seed % 2 == 0) {
    expect_same_on_gpu(train, 1e-4);
  } else {
    expect_same_on_two_gpus(train, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuProgramsTest, ::testing::Range(0, kPrograms));

}  // namespace
}  // namespace cohort::keras
