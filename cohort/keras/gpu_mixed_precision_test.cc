// Mixed precision on simulated GPUs: as on the CPU, and what a step waits for.
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/device.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using mixed_precision::LossScaleOptimizer;
using mixed_precision::set_global_policy;

std::vector<Tensor> train(const char* policy) {
  set_global_policy(policy);
  const Sequential model({layers::Conv2D(4, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                          layers::BatchNormalization(), layers::Flatten(), layers::Dense(8),
                          layers::Dense(2, {.dtype = "float32"})});
  set_global_policy(std::nullopt);
  model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.01}), .loss = "mse"});
  const Tensor x = at::randn({16, 8, 8, 1});
  const auto history =
      model.fit(x, at::randn({16, 2}), {.batch_size = 8, .epochs = 2, .verbose = 0});
  auto all = values_of(model.weights());
  for (const Tensor& weight : all) EXPECT_EQ(weight.scalar_type(), float32);
  all.push_back(at::tensor(history["loss"]));
  if (const auto scaled = LossScaleOptimizer::from(model.optimizer())) {
    all.push_back(scaled->loss_scale());
  }
  return all;
}

class GpuMixedPrecision : public ::testing::TestWithParam<const char*> {
 protected:
  const testing::SimulatedGpus gpus_{2};
};

TEST_P(GpuMixedPrecision, TrainsAsOnTheCpu) {
  expect_same_on_gpu([&](const distribute::Strategy&) { return train(GetParam()); }, 0.02);
}

TEST_P(GpuMixedPrecision, TrainsAsOnTwoCpus) {
  expect_same_on_two_gpus([&](const distribute::Strategy&) { return train(GetParam()); }, 0.02);
}

INSTANTIATE_TEST_SUITE_P(All, GpuMixedPrecision,
                         ::testing::Values("mixed_bfloat16", "mixed_float16"));

int64_t waits_of_a_step(const optimizers::Optimizer& optimizer, const char* policy) {
  const testing::SimulatedGpus gpus(1);
  const distribute::OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const layers::Dense dense(4, {.dtype = policy});
  const Tensor x = at::randn({8, 4}).to(internal::torch_device("GPU:0"));
  const auto step = [&] {
    GradientTape tape;
    const Tensor loss = dense(x).to(float32).square().sum();
    optimizer.minimize(loss, dense.trainable_variables(), tape);
  };
  for (int i = 0; i < 3; ++i) strategy.run(step);
  const auto before = testing::device_counts();
  strategy.run(step);
  return (testing::device_counts() - before).host_waits;
}

TEST(GpuMixedPrecisionSteps, WaitOnceForADynamicScaleAlone) {
  EXPECT_EQ(waits_of_a_step(optimizers::Adam(), "mixed_bfloat16"), 0);
  EXPECT_EQ(waits_of_a_step(LossScaleOptimizer(optimizers::Adam()), "mixed_float16"), 1);
  EXPECT_EQ(waits_of_a_step(
                LossScaleOptimizer(optimizers::Adam(), {.dynamic = false, .initial_scale = 128}),
                "mixed_float16"),
            0);
}

TEST(GpuMixedPrecisionSteps, RecurrentLayersOf16BitsAreMade) {
  const testing::SimulatedGpus gpus(1);
  const distribute::OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  for (const auto& [policy, dtype] :
       {std::pair("bfloat16", at::kBFloat16), std::pair("float16", at::kHalf)}) {
    const layers::LSTM layer(4, {.dtype = policy});
    const Tensor x = at::randn({2, 3, 5}).to(internal::torch_device("GPU:0"));
    const Tensor y = strategy.run([&] { return layer(x); }).value(0);
    EXPECT_EQ(y.scalar_type(), dtype);
    EXPECT_EQ(layer.dtype(), dtype);
  }
}

}  // namespace
}  // namespace cohort::keras
