// How often a training step on a simulated GPU copies, and how often the host waits.
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/core/structure/device.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/testing/device/gpu_and_cpu.h"

namespace cohort::keras {
namespace {

using testing::device_counts;
using testing::DeviceCounts;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The step of guide 004 on data that is on the device.
class GuideStep {
 public:
  explicit GuideStep(const optimizers::Optimizer& optimizer)
      : optimizer_(optimizer),
        model_({layers::Conv2D(4, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                layers::Flatten(), layers::Dense(10)}) {}

  Tensor operator()(const Tensor& images, const Tensor& labels) const {
    GradientTape tape;
    const Tensor scores = model_(images, {.training = true});
    const Tensor loss = loss_(labels, scores).sum() / 8;
    const auto gradients = tape.gradient(loss, model_.trainable_variables());
    optimizer_.apply_gradients(zip(gradients, model_.trainable_variables()));
    return loss;
  }

 private:
  const optimizers::Optimizer optimizer_;
  const Sequential model_;
  const losses::SparseCategoricalCrossentropy loss_{
      {.from_logits = true, .reduction = losses::Reduction::NONE}};
};

DeviceCounts counts_of_a_step(const optimizers::Optimizer& optimizer) {
  const testing::SimulatedGpus gpus(1);
  const distribute::OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const GuideStep step(optimizer);
  const auto batch =
      strategy.experimental_distribute_values_from_function([&](const distribute::ValueContext&) {
        const auto device = internal::torch_device("GPU:0");
        return Structure(tuple(at::randn({8, 12, 12, 1}).to(device),
                               at::randint(10, {8}, at::kLong).to(device)));
      });
  for (int i = 0; i < 3; ++i) strategy.run(step, batch);
  const DeviceCounts before = device_counts();
  strategy.run(step, batch);
  return device_counts() - before;
}

TEST(GpuSteps, AStepOnDeviceDataWaitsForNothing) {
  for (const optimizers::Optimizer& optimizer :
       {optimizers::Optimizer(optimizers::Adam()),
        optimizers::Optimizer(optimizers::SGD({.learning_rate = 0.1, .momentum = 0.9}))}) {
    const DeviceCounts step = counts_of_a_step(optimizer);
    EXPECT_EQ(step.to_host, 1);  // the least and the largest label; nobody waits for them
    EXPECT_EQ(step.to_device, 0);
    EXPECT_EQ(step.host_waits, 0);
    EXPECT_GT(step.kernels, 20);
  }
}

TEST(GpuSteps, ClippingByTheNormWaitsForNothing) {
  for (const optimizers::AdamOptions& options : {optimizers::AdamOptions{.clipnorm = 0.1},
                                                 optimizers::AdamOptions{.global_clipnorm = 0.1}}) {
    const DeviceCounts step = counts_of_a_step(optimizers::Adam(options));
    EXPECT_EQ(step.host_waits, 0);
    EXPECT_EQ(step.to_host, 1);
  }
}

TEST(GpuSteps, SkippingUpdatesThatAreNotFiniteWaitsOnce) {
  const DeviceCounts step =
      counts_of_a_step(optimizers::Adam({.not_finite = optimizers::NotFinite::SKIP}));
  EXPECT_EQ(step.host_waits, 1);
  EXPECT_EQ(step.to_host, 2);
}

// What a step more costs, of whole epochs: a pipeline reads ahead.
DeviceCounts counts_of_a_step_of_fit() {
  const testing::SimulatedGpus gpus(1);
  const distribute::OneDeviceStrategy strategy("GPU:0");
  const auto scope = strategy.scope();
  const Sequential model(
      {layers::Conv2D(4, 3, {.activation = "relu"}), layers::Flatten(), layers::Dense(10)});
  model.compile({.optimizer = optimizers::Adam(),
                 .loss = losses::SparseCategoricalCrossentropy({.from_logits = true}),
                 .metrics = {"accuracy"},
                 .run_eagerly = true});
  const Tensor images = at::randn({160, 6, 6, 1}), labels = at::randint(10, {160}, at::kLong);
  const auto counts_of = [&](int64_t epochs) {
    const DeviceCounts before = device_counts();
    model.fit(images, labels, {.batch_size = 8, .epochs = epochs, .verbose = 0});
    return device_counts() - before;
  };
  counts_of(1);
  const DeviceCounts few = counts_of(1), many = counts_of(3);
  const DeviceCounts more = many - few;
  constexpr int64_t kSteps = 2 * 160 / 8;
  return {.to_device = more.to_device / kSteps,
          .to_host = more.to_host / kSteps,
          .between_devices = more.between_devices / kSteps,
          .host_waits = more.host_waits / kSteps,
          .kernels = more.kernels / kSteps};
}

TEST(GpuSteps, AStepOfFitThatRunsAsItIsWaitsForNothing) {
  const DeviceCounts step = counts_of_a_step_of_fit();
  EXPECT_EQ(step.host_waits, 0);
  EXPECT_EQ(step.to_device, 2);  // images, labels
  EXPECT_LE(step.to_host, 1);
}

TEST(GpuSteps, ALabelOutOfRangeGivesNanAndThenAnError) {
  const testing::SimulatedGpus gpus(1);
  const distribute::OneDeviceStrategy strategy("GPU:0");
  const losses::SparseCategoricalCrossentropy loss(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const auto losses_of = [&](const Tensor& labels) {
    return strategy
        .run([&](distribute::ReplicaContext&) {
          return loss(labels.to(internal::torch_device("GPU:0")), ones({2, 3}));
        })
        .value(0)
        .cpu();
  };
  EXPECT_FALSE(losses_of(at::tensor({0, 2}, at::kLong)).isnan().any().item<bool>());
  const Tensor bad = losses_of(at::tensor({1, 3}, at::kLong));
  EXPECT_FALSE(bad[0].isnan().item<bool>());
  EXPECT_TRUE(bad[1].isnan().item<bool>());
  EXPECT_THAT(
      [&] {
        losses_of(at::tensor({0, 2}, at::kLong));
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("label 3 of step 2 is outside [0, 3)")));
  EXPECT_FALSE(losses_of(at::tensor({0, 2}, at::kLong)).isnan().any().item<bool>());
}

}  // namespace
}  // namespace cohort::keras
