// evaluate, predict, and single batches.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/distributed_dataset.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

TEST(Evaluate, IsTheMeanOverAllExamples) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(13, float32);
  const Logs logs = model.evaluate(data.images, data.labels, {.batch_size = 4, .verbose = 0});
  const Tensor logits = model(data.images);
  const Tensor losses = class_loss().with_reduction(losses::Reduction::NONE)(data.labels, logits);
  EXPECT_NEAR(logs["loss"], losses.mean().item<double>(), 1e-6);
  EXPECT_NEAR(logs["accuracy"],
              (logits.argmax(-1) == data.labels).to(float64).mean().item<double>(), 1e-6);
}

TEST(Evaluate, ChangesNoWeights) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  model.evaluate(image_batches(13, 6), {.verbose = 0});
  const auto before = all_weights(model);
  model.evaluate(image_batches(13, 6), {.verbose = 0, .steps = 2});
  EXPECT_EQ(all_weights(model), before);
}

TEST(Predict, ComesInTheOrderOfTheData) {
  const LabelledImages data = make_images(13, float32);
  const auto expect_ordered = [&](const distribute::Strategy& strategy) {
    const auto scope = strategy.scope();
    const Sequential model = small_classifier();
    const Tensor whole = model(data.images);
    const Tensor predicted = model.predict(data.images, {.batch_size = 4, .verbose = 0});
    ASSERT_EQ(predicted.sizes(), whole.sizes());
    EXPECT_LT((predicted - whole).abs().max().item<double>(), 1e-5);
    // Of (x, y) it uses x.
    const Tensor of_dataset = model.predict(image_batches(13, 4), {.verbose = 0});
    ASSERT_EQ(of_dataset.sizes(), whole.sizes());
    EXPECT_LT((of_dataset - whole).abs().max().item<double>(), 1e-5);
  };
  expect_ordered(distribute::mirrored(1));
  expect_ordered(distribute::mirrored(3));
  distribute::run_all_tasks(
      2, 2, [&](const distribute::Strategy& strategy, int) { expect_ordered(strategy); });
}

TEST(Predict, GivesTheFormOfTheOutputs) {
  const SymbolicTensor input = Input({2});
  const Functional model(input, SymbolicStructure::make_dict({{"a", layers::Dense(1)(input)},
                                                              {"b", layers::Dense(3)(input)}}));
  const Structure outputs = model.predict(numbers({1, 2, 3, 4, 5, 6}, {3, 2}), {.verbose = 0});
  EXPECT_EQ(outputs["a"].tensor().sizes(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(outputs["b"].tensor().sizes(), (std::vector<int64_t>{3, 3}));
}

TEST(Predict, WithoutDataIsRefused) {
  const Sequential model = small_classifier();
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.predict(image_batches(13, 4).take(0), {.verbose = 0}); }),
              HasSubstr("no batches"));
}

TEST(OnBatch, TrainsTestsAndPredictsOneBatch) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(8, float32);
  const Logs before = model.test_on_batch(data.images, data.labels, {.reset_metrics = true});
  const Logs first = model.train_on_batch(data.images, data.labels, {.reset_metrics = true});
  EXPECT_NEAR(first["loss"], before["loss"], 1e-6);
  for (int i = 0; i < 20; ++i) model.train_on_batch(data.images, data.labels);
  const Logs after = model.test_on_batch(data.images, data.labels, {.reset_metrics = true});
  EXPECT_LT(after["loss"], before["loss"]);
  const Tensor predicted = model.predict_on_batch(data.images);
  EXPECT_LT((predicted - model(data.images)).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace cohort::keras
