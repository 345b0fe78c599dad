// Guide 004's loop follows one loss curve on any number of replicas.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/profiler/profiler.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/reduce/all_reduce_ops.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/testing_training.h"

namespace cohort::keras {
namespace {

using ::testing::Lt;

ModelHandle conv_model() {
  const regularizers::L2 regularizer(1e-3);
  return Sequential(
      {layers::Conv2D(4, 3, {.activation = "relu", .kernel_regularizer = regularizer}),
       layers::MaxPooling2D(), layers::Flatten(),
       layers::Dense(3, {.kernel_regularizer = regularizer})});
}

class Subclassed : public Model {
 public:
  Subclassed() {
    track("conv", conv_);
    track("flatten", flatten_);
    track("dense", dense_);
  }

 protected:
  Tensor call(const Tensor& images, const CallOptions& options) override {
    const Tensor features = conv_(images, options);
    add_loss(features.square().mean() * 1e-2);
    return dense_(flatten_(features));
  }

 private:
  layers::Conv2D conv_{2, 3, {.activation = "relu"}};
  layers::Flatten flatten_;
  layers::Dense dense_{3};
};

ModelHandle functional_model() {
  const SymbolicTensor images = Input({8, 8, 1});
  const auto features = layers::Conv2D(3, 3, {.strides = 2, .padding = "same"})(images);
  const auto left = layers::GlobalAveragePooling2D()(features);
  const auto right = layers::Dense(2, {.activation = "tanh"})(layers::Flatten()(features));
  return Functional(images, layers::Dense(3)(layers::Concatenate()({left, right})));
}

class LossCurve : public ::testing::TestWithParam<distribute::Storage> {};

TEST_P(LossCurve, IsTheSameOnAnyNumberOfReplicasInFloat64) {
  const auto run = [](int replicas) {
    return train({.replicas = replicas, .storage = GetParam()}, conv_model);
  };
  const TrainingResult one = run(1);
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (const int replicas : {2, 4, 5}) {
    const TrainingResult several = run(replicas);
    ASSERT_EQ(several.losses.size(), one.losses.size());
    EXPECT_THAT(curve_difference(one.losses, several.losses), Lt(1e-9)) << replicas;
    EXPECT_TRUE(several.components_equal) << replicas;
  }
}

TEST_P(LossCurve, IsTheSameOnAnyNumberOfReplicasInFloat32) {
  const auto run = [](int replicas) {
    return train({.replicas = replicas, .storage = GetParam(), .dtype = float32}, conv_model);
  };
  const TrainingResult one = run(1);
  for (const int replicas : {2, 4}) {
    EXPECT_THAT(curve_difference(one.losses, run(replicas).losses), Lt(1e-3)) << replicas;
  }
}

INSTANTIATE_TEST_SUITE_P(Storage, LossCurve, ::testing::ValuesIn(distribute::kStorages),
                         [](const auto& info) { return distribute::storage_name(info.param); });

// One copy or one for each replica: the same additions in the same order.
TEST(Training, CentralStorageGivesTheBitsOfMirroring) {
  for (const DType dtype : {float32, float64}) {
    for (const int replicas : {1, 2, 3}) {
      TrainingRun run{.replicas = replicas, .dtype = dtype};
      const TrainingResult mirrored = train(run, conv_model);
      run.storage = distribute::Storage::kCentral;
      const TrainingResult central = train(run, conv_model);
      EXPECT_EQ(central.losses, mirrored.losses) << replicas;
      EXPECT_EQ(central.final_weights, mirrored.final_weights) << replicas;
    }
  }
}

TEST(Training, GradientsGoThroughTheCrossDeviceOpsOfTheStrategy) {
  const TrainingRun plain{.replicas = 3};
  const TrainingResult expected = train(plain, conv_model);
  int sums = 0;
  TrainingRun run = plain;
  run.cross_device_ops = std::make_shared<distribute::ReductionToOneDevice>(
      "", [&](const std::vector<Tensor>& values) {
        ++sums;
        return add_n(values);
      });
  const TrainingResult one_device = train(run, conv_model);
  EXPECT_THAT(curve_difference(expected.losses, one_device.losses), Lt(1e-9));
  EXPECT_GT(sums, static_cast<int>(expected.losses.size()) * 4);  // losses, and each gradient
  run.cross_device_ops = std::make_shared<distribute::HierarchicalCopyAllReduce>(2);
  EXPECT_THAT(curve_difference(expected.losses, train(run, conv_model).losses), Lt(1e-9));
}

TEST(Training, TwoRunsOfOneSeedAreBitwiseEqual) {
  const TrainingResult a = train({.replicas = 3, .dtype = float32}, conv_model);
  const TrainingResult b = train({.replicas = 3, .dtype = float32}, conv_model);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.final_weights, b.final_weights);
}

TEST(Training, FunctionalModelsFollowTheCurve) {
  const auto one = train({.replicas = 1}, functional_model);
  const auto three = train({.replicas = 3}, functional_model);
  EXPECT_THAT(curve_difference(one.losses, three.losses), Lt(1e-9));
}

// add_loss is a mean over the rows of a replica, so it takes batches that divide evenly.
TEST(Training, SubclassedModelsTrain) {
  const auto make = []() -> ModelHandle { return std::make_shared<Subclassed>(); };
  const auto result = train({.replicas = 2, .epochs = 10}, make);
  EXPECT_LT(result.losses[result.losses.size() - 3], result.losses[0]);
  EXPECT_TRUE(result.components_equal);
}

// The account of real steps: each phase is entered by who does it.
TEST(Training, IsAccountedForByThePhasesOfItsSteps) {
  const auto strategy = distribute::mirrored(2);
  auto scope = strategy.scope();
  const Sequential model({layers::Dense(64), layers::Dense(1)});
  const optimizers::Adam optimizer;
  scope.close();
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(at::ones({64, 32})).batch(8));
  const auto step = [&](const Tensor& x) {
    GradientTape tape;
    const Tensor loss = model(x, {.training = true}).square().sum();
    const auto variables = model.trainable_variables();
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables));
  };
  profiler::start();
  for (const auto& batch : dataset) strategy.run(step, batch);
  const profiler::Profile profile = profiler::stop();
  EXPECT_EQ(profile.steps, 8);
  ASSERT_EQ(profile.threads.size(), 2);
  std::chrono::nanoseconds input{0}, reduce{0}, wait{0};
  for (const profiler::ThreadProfile& thread : profile.threads) {
    EXPECT_GT(thread.of(profiler::Phase::kCompute).count(), 0) << thread.name;
    EXPECT_GT(thread.of(profiler::Phase::kUpdate).count(), 0) << thread.name;
    input += thread.of(profiler::Phase::kInput);
    reduce += thread.of(profiler::Phase::kReduce);
    wait += thread.of(profiler::Phase::kWait);
  }
  EXPECT_GT(input.count(), 0);
  EXPECT_GT(reduce.count(), 0);
  EXPECT_GT(wait.count(), 0);
}

}  // namespace
}  // namespace cohort::keras
