// Guide 004's loop through a StepRunner: what the loop over the distributed dataset computes, to
// the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/dataset.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/testing_training.h"

namespace cohort::keras {
namespace {

using ::testing::ElementsAreArray;
using ::testing::SizeIs;

constexpr int64_t kGlobalBatch = 6;

struct LoopResult {
  std::vector<double> losses;
  std::vector<double> weights;  // of all replicas
  double accuracy = 0;          // what the metric has gathered
};

// Two epochs of 13 images, shuffled; the last step of each has one image, so a replica has none.
LoopResult two_epochs(bool through_runner) {
  const auto strategy = distribute::mirrored(2);
  random::set_seed(5);
  const LabelledImages data = make_images(13, float32);
  const auto dataset = data::Dataset::from_tensor_slices(tuple(data.images, data.labels))
                           .shuffle(13, {.seed = 7})
                           .batch(kGlobalBatch);
  const auto scope = strategy.scope();
  const Sequential model({layers::Conv2D(4, 3, {.activation = "relu"}), layers::MaxPooling2D(),
                          layers::Flatten(), layers::Dense(3)});
  const optimizers::Adam optimizer({.learning_rate = 0.01});
  const metrics::SparseCategoricalAccuracy accuracy;
  const losses::SparseCategoricalCrossentropy loss_object(
      {.from_logits = true, .reduction = losses::Reduction::NONE});
  const auto train_step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor predictions = model(images, {.training = true});
    const Tensor loss = nn::compute_average_loss(loss_object(labels, predictions),
                                                 {.global_batch_size = kGlobalBatch});
    const auto gradients = tape.gradient(loss, model.trainable_variables());
    optimizer.apply_gradients(zip(gradients, model.trainable_variables()));
    accuracy.update_state(labels, predictions);
    return loss;
  };

  LoopResult result;
  if (through_runner) {
    const auto runner = strategy.core()->make_runner();
    const auto input = runner->make_input(dataset);
    const auto step = internal::make_step("train", train_step);
    for (int epoch = 0; epoch < 2; ++epoch, input->restart()) {
      std::vector<std::future<Structure>> losses;
      while (input->has_next()) losses.push_back(runner->schedule(step, input));
      runner->join();
      for (auto& loss : losses) result.losses.push_back(loss.get().tensor().item<double>());
    }
  } else {
    const auto dist_dataset = strategy.experimental_distribute_dataset(dataset);
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (const auto& batch : dist_dataset) {
        const auto losses = strategy.run(train_step, batch);
        result.losses.push_back(strategy.reduce(distribute::ReduceOp::SUM, losses).item<double>());
      }
    }
  }
  for (const Variable& variable : model.trainable_variables()) {
    const auto components = variable.components();
    for (const Tensor& component : components.values()) {
      for (const double value : elements(component)) result.weights.push_back(value);
    }
  }
  result.accuracy = accuracy.result().item<double>();
  return result;
}

TEST(StepRunnerTraining, GivesTheBitsOfThePlainLoop) {
  const LoopResult plain = two_epochs(false);
  const LoopResult scheduled = two_epochs(true);
  EXPECT_THAT(plain.losses, SizeIs(6));
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  EXPECT_THAT(scheduled.losses, ElementsAreArray(plain.losses));
  EXPECT_THAT(scheduled.weights, ElementsAreArray(plain.weights));
  EXPECT_EQ(scheduled.accuracy, plain.accuracy);
}

}  // namespace
}  // namespace cohort::keras
