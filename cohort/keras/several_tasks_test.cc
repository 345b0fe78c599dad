// Guide 004's loop on tasks of one replica each: what it does on as many replicas of one process.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/testing_training.h"

namespace cohort::keras {
namespace {

using distribute::Strategy;

struct Curve {
  std::vector<double> losses;  // one a step
  std::vector<Tensor> weights;
  double mean_loss = 0;  // of a metric, over all steps
};

// Two epochs in global batches of 6 of 13 images: the last batch of each leaves replicas without.
Curve train_on(const Strategy& strategy) {
  constexpr int64_t kBatch = 6;
  const LabelledImages data = make_images(13, float32);
  const auto scope = strategy.scope();
  // Named and seeded, because tasks that are threads count layers and draw seeds together.
  const auto initializer = initializers::GlorotUniform({.seed = 7});
  const Sequential model(
      {layers::Conv2D(4, 3,
                      {.activation = "relu", .kernel_initializer = initializer, .name = "conv"}),
       layers::MaxPooling2D(), layers::Flatten(),
       layers::Dense(3, {.kernel_initializer = initializer, .name = "dense"})});
  const optimizers::Adam optimizer({.learning_rate = 0.01});
  const metrics::Mean mean_loss({.name = "mean_loss"});
  const losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  const auto dataset = strategy.experimental_distribute_dataset(
      data::Dataset::from_tensor_slices(tuple(data.images, data.labels))
          .batch(kBatch)
          .with_options(options));
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor loss = nn::compute_average_loss(
        loss_object(labels, model(images, {.training = true})), {.global_batch_size = kBatch});
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean_loss(loss);
    return loss;
  };
  Curve curve;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& batch : dataset) {
      curve.losses.push_back(
          strategy.reduce(distribute::ReduceOp::SUM, strategy.run(step, batch)).item<double>());
    }
  }
  curve.mean_loss = mean_loss.result().item<double>();
  for (const Variable& variable : model.trainable_variables()) {
    curve.weights.push_back(variable.value().detach().clone());
  }
  return curve;
}

std::vector<Curve> train_in_tasks(int tasks, int replicas_each) {
  std::vector<Curve> curves(static_cast<size_t>(tasks));
  distribute::run_all_tasks(tasks, replicas_each, [&](const Strategy& strategy, int task) {
    curves[static_cast<size_t>(task)] = train_on(strategy);
  });
  return curves;
}

void expect_close(const Curve& curve, const Curve& other, double tolerance) {
  ASSERT_EQ(curve.losses.size(), other.losses.size());
  for (size_t i = 0; i < curve.losses.size(); ++i) {
    EXPECT_NEAR(curve.losses[i], other.losses[i], tolerance) << i;
  }
  EXPECT_NEAR(curve.mean_loss, other.mean_loss, tolerance);
}

TEST(SeveralTasksTraining, WeightsAreEqualOnAllTasks) {
  const auto curves = train_in_tasks(2, 2);
  ASSERT_EQ(curves[0].losses.size(), 6u);
  EXPECT_LT(curves[0].losses[3], curves[0].losses[0]);  // the same batch
  EXPECT_EQ(curves[0].losses, curves[1].losses);
  EXPECT_EQ(curves[0].mean_loss, curves[1].mean_loss);
  for (size_t i = 0; i < curves[0].weights.size(); ++i) {
    EXPECT_TRUE(at::equal(curves[0].weights[i], curves[1].weights[i])) << i;
  }
}

TEST(SeveralTasksTraining, IsThatOfOneProcessWithAsManyReplicas) {
  const Curve two = train_on(distribute::mirrored(2));
  for (const Curve& curve : train_in_tasks(2, 1)) expect_close(curve, two, 1e-6);
  const Curve four = train_on(distribute::mirrored(4));
  for (const Curve& curve : train_in_tasks(2, 2)) expect_close(curve, four, 1e-4);
}

TEST(SeveralTasks, FitWithOtherOptionsIsAnErrorThatHasBoth) {
  std::vector<std::string> errors(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Sequential model({layers::Flatten(), layers::Dense(3, {.name = "dense"})}, {.name = "m"});
    model.compile({.optimizer = "sgd", .loss = "mse"});
    const Tensor x = at::ones({34, 1});
    try {
      model.fit(x, x, {.batch_size = 16 + task, .verbose = 0});
    } catch (const Error& error) {
      errors[static_cast<size_t>(task)] = error.what();
    }
  });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("batch_size=16"),
                                        ::testing::HasSubstr("batch_size=17")));
  }
}

}  // namespace
}  // namespace cohort::keras
