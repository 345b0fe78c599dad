// Every strategy with every optimizer and kind of layer on simulated GPUs: weights and slots as on the CPU.
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "cohort/distribute/strategies/central_storage_strategy.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using distribute::Strategy;
using layers::LayerHandle;
using optimizers::Optimizer;
namespace l = layers;

// One of an axis of the matrix.
template <class Value>
struct Named {
  const char* name;
  Value value;

  friend std::ostream& operator<<(std::ostream& out, const Named& one) { return out << one.name; }
};

// Takes the devices of one type ("CPU", "GPU"), of which there are two.
using StrategyCase = Named<std::function<Strategy(const std::string&)>>;
using OptimizerCase = Named<std::function<Optimizer()>>;
struct Layers {
  std::vector<int64_t> example;  // its shape
  std::function<std::vector<LayerHandle>()> make;
  bool takes_ids = false;
};
using LayerCase = Named<Layers>;

class GpuMatrixTest
    : public ::testing::TestWithParam<std::tuple<StrategyCase, OptimizerCase, LayerCase>> {
 protected:
  // Weights and the optimizer's variables after three steps of four examples.
  static std::vector<Tensor> train(const std::string& device_type) {
    const auto& [strategy_case, optimizer_case, layer_case] = GetParam();
    utils::set_random_seed(7);
    const Strategy strategy = strategy_case.value(device_type);
    const auto scope = strategy.scope();
    std::vector<LayerHandle> all = layer_case.value.make();
    all.push_back(l::Dense(2));
    const Sequential model(all);
    const Optimizer optimizer = optimizer_case.value();
    model.compile({.optimizer = optimizer, .loss = "mse"});
    at::manual_seed(3);
    std::vector<int64_t> shape{12};
    shape.insert(shape.end(), layer_case.value.example.begin(), layer_case.value.example.end());
    const Tensor x =
        layer_case.value.takes_ids ? at::randint(9, shape, at::kLong) : at::randn(shape);
    model.fit(x, at::randn({12, 2}), {.batch_size = 4, .verbose = 0, .shuffle = false});
    auto values = values_of(model.weights());
    for (const Tensor& value : values_of(optimizer.variables())) values.push_back(value);
    return values;
  }
};

TEST_P(GpuMatrixTest, TrainsAsOnTheCpu) {
  const testing::SimulatedGpus gpus(2);
  config::set_logical_device_configuration("CPU", 2);
  expect_close({train("CPU"), train("GPU")}, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(
    All, GpuMatrixTest,
    ::testing::Combine(
        ::testing::Values(
            StrategyCase{"OneDevice",
                         [](const std::string& type) {
                           return distribute::OneDeviceStrategy(type + ":0");
                         }},
            StrategyCase{"Mirrored",
                         [](const std::string& type) {
                           return distribute::MirroredStrategy({type + ":0", type + ":1"});
                         }},
            StrategyCase{"CentralStorage",
                         [](const std::string& type) {
                           return distribute::CentralStorageStrategy({type + ":0", type + ":1"});
                         }}),
        ::testing::Values(
            OptimizerCase{"SGD",
                          [] {
                            return optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9});
                          }},
            OptimizerCase{"Adam", [] { return optimizers::Adam({.learning_rate = 0.01}); }},
            OptimizerCase{"AdamW", [] { return optimizers::AdamW({.learning_rate = 0.01}); }},
            OptimizerCase{"RMSprop", [] { return optimizers::RMSprop({.learning_rate = 0.01}); }},
            OptimizerCase{"Adagrad", [] { return optimizers::Adagrad({.learning_rate = 0.1}); }},
            OptimizerCase{"Adadelta", [] { return optimizers::Adadelta({.learning_rate = 0.5}); }},
            OptimizerCase{"Adamax", [] { return optimizers::Adamax({.learning_rate = 0.01}); }},
            OptimizerCase{"Nadam", [] { return optimizers::Nadam({.learning_rate = 0.01}); }},
            OptimizerCase{"Lion", [] { return optimizers::Lion({.learning_rate = 0.01}); }},
            OptimizerCase{"Ftrl", [] { return optimizers::Ftrl({.learning_rate = 0.01}); }}),
        ::testing::Values(
            LayerCase{"Dense",
                      {{6}, [] { return std::vector<LayerHandle>{l::Dense(5, {.activation = "tanh"})}; }}},
            LayerCase{"Conv2D",
                      {{6, 6, 2},
                       [] {
                         return std::vector<LayerHandle>{l::Conv2D(3, 3, {.activation = "relu"}),
                                                         l::MaxPooling2D(), l::Flatten()};
                       }}},
            LayerCase{"BatchNormalization",
                      {{6}, [] {
                         return std::vector<LayerHandle>{l::Dense(5, {.use_bias = false}), l::BatchNormalization()};
                       }}},
            LayerCase{"Dropout",
                      {{6}, [] {
                         return std::vector<LayerHandle>{l::Dense(5), l::Dropout(0.5, {.seed = 3})};
                       }}},
            LayerCase{"Embedding",
                      {{4},
                       [] {
                         return std::vector<LayerHandle>{l::Embedding(9, 3),
                                                         l::GlobalAveragePooling1D()};
                       },
                       true}},
            LayerCase{"LSTM",
                      {{4, 3}, [] { return std::vector<LayerHandle>{l::LSTM(3)}; }}})),
    [](const auto& info) {
      return internal::str(std::get<0>(info.param).name, "_", std::get<1>(info.param).name, "_",
                           std::get<2>(info.param).name);
    });

}  // namespace
}  // namespace cohort::keras
