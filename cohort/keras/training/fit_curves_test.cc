// fit computes what a loop of one's own computes, to the bit, under every strategy that there is.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/base/zip.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using distribute::Strategy;
using ::testing::ElementsAreArray;

constexpr int64_t kExamples = 13;  // the last batch is short, and leaves a replica without examples
constexpr int64_t kBatch = 6;
constexpr int kEpochs = 3;

struct Curve {
  std::vector<double> losses;  // one an epoch
  std::vector<double> accuracies;
  std::vector<double> weights;
};

data::Dataset batches(DType dtype = float64) {
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::DATA;
  return image_batches(kExamples, kBatch, dtype).with_options(options);
}

Curve by_fit(const Strategy& strategy, DType dtype = float64) {
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const History history = model.fit(batches(dtype), {.epochs = kEpochs, .verbose = 0});
  return {history["loss"], history["accuracy"], all_weights(model)};
}

// The same with the tools of guide 004.
Curve by_hand(const Strategy& strategy, DType dtype = float64) {
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  const optimizers::Adam optimizer({.learning_rate = 0.01});
  const metrics::Mean mean_loss;
  const metrics::SparseCategoricalAccuracy accuracy;
  const auto loss_object = class_loss().with_reduction(losses::Reduction::NONE);
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    GradientTape tape;
    const Tensor logits = model(images, {.training = true});
    const Tensor losses = loss_object(labels, logits);
    // Without a batch size: the mean over the replica's rows, by the number of replicas.
    const Tensor loss = nn::compute_average_loss(losses);
    optimizer.minimize(loss, model.trainable_variables(), tape);
    mean_loss.update_state(losses);
    accuracy.update_state(labels, logits);
  };
  const auto dataset = strategy.experimental_distribute_dataset(batches(dtype));
  Curve curve;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    mean_loss.reset_state();
    accuracy.reset_state();
    for (const auto& batch : dataset) strategy.run(step, batch);
    curve.losses.push_back(mean_loss.result().item<double>());
    curve.accuracies.push_back(accuracy.result().item<double>());
  }
  curve.weights = all_weights(model);
  return curve;
}

void expect_equal(const Curve& fitted, const Curve& plain) {
  EXPECT_THAT(fitted.weights, ElementsAreArray(plain.weights));  // bits
  EXPECT_THAT(fitted.accuracies, ElementsAreArray(plain.accuracies));
  EXPECT_LT(curve_difference(fitted.losses, plain.losses), 1e-12);
  EXPECT_LT(fitted.losses.back(), fitted.losses.front());
}

TEST(FitCurves, AreThoseOfAPlainLoop) {
  const Float64 dtype;
  const distribute::OneDeviceStrategy one("CPU:0");
  expect_equal(by_fit(one), by_hand(one));
  const auto two = distribute::mirrored(2);
  expect_equal(by_fit(two), by_hand(two));
  const auto central = distribute::with_storage(distribute::Storage::kCentral, 2);
  expect_equal(by_fit(central), by_hand(central));
  const auto three = distribute::mirrored(3);
  expect_equal(by_fit(three), by_hand(three));
}

// Of so many replicas, however their variables are stored and wherever they are.
TEST(FitCurves, AreEqualUnderAllSynchronousStrategies) {
  for (const DType dtype : {float64, float32}) {
    const double tolerance = dtype == float64 ? 1e-9 : 1e-3;
    std::optional<Float64> as_float64;
    if (dtype == float64) as_float64.emplace();
    const Curve expected = by_hand(distribute::mirrored(2), dtype);
    std::vector<Curve> found;
    for (const distribute::Storage storage : distribute::kStorages) {
      const Strategy strategy = distribute::with_storage(storage, 2);
      found.push_back(by_fit(strategy, dtype));
      found.push_back(by_hand(strategy, dtype));
    }
    std::vector<Curve> of_tasks(2);
    distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
      of_tasks[static_cast<size_t>(task)] = by_fit(strategy, dtype);
    });
    found.insert(found.end(), of_tasks.begin(), of_tasks.end());
    for (const Curve& curve : found) {
      EXPECT_LT(curve_difference(curve.losses, expected.losses), tolerance);
      EXPECT_LT(curve_difference(curve.accuracies, expected.accuracies), tolerance);
      EXPECT_LT(curve_difference(curve.weights, expected.weights), tolerance * 100);
    }
  }
}

TEST(FitCurves, WithoutAStrategyAreThoseOfOneDevice) {
  const Float64 dtype;
  const Curve one = by_fit(distribute::OneDeviceStrategy("CPU:0"));
  const Sequential model = small_classifier();
  model.compile(class_options());
  const History history = model.fit(batches(), {.epochs = kEpochs, .verbose = 0});
  EXPECT_THAT(history["loss"], ElementsAreArray(one.losses));
  EXPECT_THAT(all_weights(model), ElementsAreArray(one.weights));
}

TEST(FitCurves, OfTwoTasksAreThoseOfTwoReplicas) {
  const Float64 dtype;
  const Curve two = by_fit(distribute::mirrored(2));
  std::vector<Curve> fitted(2);
  std::vector<Curve> plain(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    fitted[static_cast<size_t>(task)] = by_fit(strategy);
    plain[static_cast<size_t>(task)] = by_hand(strategy);
  });
  for (size_t task = 0; task < 2; ++task) {
    expect_equal(fitted[task], plain[task]);
    EXPECT_LT(curve_difference(fitted[task].losses, two.losses), 1e-9);
  }
  EXPECT_EQ(fitted[0].losses, fitted[1].losses);
  EXPECT_EQ(fitted[0].weights, fitted[1].weights);
}

// One of the two has no rows in its first step, in which metrics and optimizer make their
// variables.
TEST(FitCurves, BeginWithATaskWithoutRows) {
  std::vector<Curve> curves(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Sequential model = small_classifier();
    model.compile(class_options());
    const LabelledImages data = make_images(3, float32);
    const History history =
        model.fit(data.images, data.labels, {.batch_size = 1, .epochs = 2, .verbose = 0});
    curves[static_cast<size_t>(task)] = {history["loss"], history["accuracy"], all_weights(model)};
  });
  EXPECT_EQ(curves[0].losses, curves[1].losses);
  EXPECT_EQ(curves[0].weights, curves[1].weights);
  EXPECT_GT(curves[0].losses.front(), 0);
}

TEST(FitCurves, TensorsAreShuffledTheSameInAllTasks) {
  std::vector<Curve> curves(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const Sequential model = small_classifier();
    model.compile(class_options());
    const LabelledImages data = make_images(kExamples, float32);
    const History history =
        model.fit(data.images, data.labels,
                  {.batch_size = kBatch, .epochs = 2, .verbose = 0, .validation_split = 0.3});
    EXPECT_EQ(history["val_loss"].size(), 2u);
    curves[static_cast<size_t>(task)] = {history["loss"], history["accuracy"], all_weights(model)};
  });
  EXPECT_EQ(curves[0].losses, curves[1].losses);
  EXPECT_EQ(curves[0].weights, curves[1].weights);
}

// Of four rows a batch, of which the tasks have as many as they like.
DatasetCreator rows_of_tasks(int64_t first, int64_t second, bool is_filtered = false) {
  return DatasetCreator([=](const distribute::InputContext& context) {
    const int64_t count = context.input_pipeline_id == 0 ? first : second;
    data::Dataset rows =
        data::Dataset::from_tensor_slices(tuple(at::ones({20, 2}), at::ones({20, 1}))).take(count);
    if (is_filtered && context.input_pipeline_id == 1) {
      rows = rows.filter([](const Tensor&, const Tensor&) { return true; });
    }
    return rows.batch(4);
  });
}

// Else one begins its data anew where another goes on.
TEST(FitTasks, AgreeOnTheStepsOfAPass) {
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const auto epochs = [&](const DatasetCreator& creator, int64_t steps) {
      const Sequential model({layers::Dense(1, {.name = "dense"})});
      model.compile({.optimizer = "sgd", .loss = "mse"});
      const History history =
          model.fit(creator, {.epochs = 3, .verbose = 0, .steps_per_epoch = steps});
      return history.epoch.size();
    };
    EXPECT_EQ(epochs(rows_of_tasks(12, 8), 3), 3u);
    EXPECT_EQ(epochs(rows_of_tasks(8, 12), 3), 3u);
    EXPECT_EQ(epochs(rows_of_tasks(12, 8), 2), 2u);  // three steps in all
    EXPECT_EQ(epochs(rows_of_tasks(12, 8), -1), 3u);
    EXPECT_EQ(epochs(rows_of_tasks(12, 8, true), 3), 1u);  // of which nobody knows the length
  });
}

TEST(FitTasks, CountTheStepsOfAPassAlike) {
  distribute::run_all_tasks(2, 2, [&](const Strategy& strategy, int) {
    const auto steps = [&](const std::function<data::Dataset(int64_t)>& make) {
      const auto dataset = strategy.distribute_datasets_from_function(
          [&](const distribute::InputContext& context) { return make(context.input_pipeline_id); });
      EXPECT_EQ(dataset.auto_shard(1, 0).cardinality(), data::kUnknownCardinality);
      return dataset.cardinality();
    };
    using data::Dataset;
    // Two replicas a task take two batches a step.
    EXPECT_EQ(steps([](int64_t task) { return Dataset::range(task == 0 ? 12 : 22).batch(4); }), 3);
    EXPECT_EQ(steps([](int64_t task) { return Dataset::range(task == 0 ? 22 : 0).batch(4); }), 3);
    EXPECT_EQ(steps([](int64_t task) {
                const Dataset rows = Dataset::range(8).batch(4);
                return task == 0 ? rows.repeat() : rows;
              }),
              data::kInfiniteCardinality);
    EXPECT_EQ(
        steps([](int64_t task) {
          const Dataset rows = Dataset::range(8);
          return (task == 0 ? rows.filter([](const Tensor&) { return true; }) : rows).batch(4);
        }),
        data::kUnknownCardinality);
    EXPECT_EQ(strategy.experimental_distribute_dataset(Dataset::range(20).batch(4)).cardinality(),
              5);
  });
}

}  // namespace
}  // namespace cohort::keras
