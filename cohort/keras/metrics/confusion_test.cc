// Metrics of the common list, beside those of metrics_test.cc; tests/interop compares them with
// TensorFlow's.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::metrics {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using distribute::Strategy;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

double value_of(const Metric& metric) { return metric.result().item<double>(); }

const Tensor kLabels = numbers({0, 1, 1, 1}, {4});
const Tensor kProbabilities = numbers({.75, .25, .5, .9}, {4});

TEST(ConfusionCounts, CountAboveTheThreshold) {
  EXPECT_EQ(TruePositives()(kLabels, kProbabilities).item<double>(), 1);
  EXPECT_EQ(FalsePositives()(kLabels, kProbabilities).item<double>(), 1);
  EXPECT_EQ(TrueNegatives()(kLabels, kProbabilities).item<double>(), 0);
  EXPECT_EQ(FalseNegatives()(kLabels, kProbabilities).item<double>(), 2);
}

TEST(ConfusionCounts, KeepTheProgramsOrderOfThresholds) {
  const TruePositives counts({.thresholds = {0.95, 0, 0.5}});
  EXPECT_THAT(elements(counts.result()), ElementsAre(0, 0, 0));
  counts.update_state(kLabels, kProbabilities);
  EXPECT_THAT(elements(counts.result()), ElementsAre(0, 3, 1));
  counts.reset_state();
  EXPECT_THAT(elements(counts.result()), ElementsAre(0, 0, 0));
}

TEST(Precision, WeighsAndAccumulates) {
  const Precision precision;
  EXPECT_EQ(value_of(precision), 0);
  precision.update_state(kLabels, kProbabilities, numbers({1, 1, 1, 3}));
  EXPECT_EQ(value_of(precision), 0.75);
  precision.update_state(numbers({1}), numbers({.8}), numbers({4}));
  EXPECT_EQ(value_of(precision), 0.875);
  EXPECT_NEAR(Recall()(kLabels, kProbabilities, numbers({1, 1, 1, 3})).item<double>(), 0.6, 1e-6);
}

TEST(Precision, OfTheBestKTakesTheFirstOfEqualOnes) {
  const Tensor y_true = numbers({1, 1, 0, 0}, {1, 4});
  EXPECT_EQ(Precision({.top_k = 2})(y_true, numbers({1, 1, 1, 1}, {1, 4})).item<double>(), 1);
  EXPECT_EQ(Recall({.top_k = 1})(y_true, numbers({0, 1, 0, 1}, {1, 4})).item<double>(), 0.5);
}

TEST(Precision, OfTheBestKAndOfOneClass) {
  const Tensor y_true = numbers({0, 0, 1, 1, 0, 0}, {2, 3});
  const Tensor y_pred = numbers({.1, .2, .15, .3, .2, .25}, {2, 3});
  EXPECT_EQ(Precision({.top_k = 2})(y_true, y_pred).item<double>(), 0.5);
  EXPECT_EQ(Recall({.top_k = 1})(y_true, y_pred).item<double>(), 0.5);
  EXPECT_EQ(Precision({.top_k = 2, .class_id = 2})(y_true, y_pred).item<double>(), 0.5);
  EXPECT_EQ(Recall({.class_id = 0})(y_true, y_pred + 0.3).item<double>(), 1);
}

TEST(AUC, IsTheShareOfPairsInTheRightOrder) {
  const Tensor y_true = numbers({0, 0, 1, 1}, {4});
  const Tensor y_pred = numbers({.1, .4, .35, .8}, {4});
  EXPECT_NEAR(AUC()(y_true, y_pred).item<double>(), 0.75, 1e-6);
  EXPECT_NEAR(AUC({.from_logits = true})(y_true, y_pred.logit()).item<double>(), 0.75, 1e-6);
  EXPECT_EQ(value_of(AUC()), 0);
}

TEST(AUC, AveragesOverLabels) {
  const Tensor y_true = numbers({0, 1, 1, 0}, {2, 2});
  const Tensor y_pred = numbers({.1, .2, .9, .8}, {2, 2});  // right order, wrong order
  EXPECT_NEAR(AUC({.num_labels = 2})(y_true, y_pred).item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(AUC({.num_labels = 2, .label_weights = {3, 1}})(y_true, y_pred).item<double>(), 0.75,
              1e-6);
}

TEST(TopK, CountsLabelsAmongTheBest) {
  const Tensor y_pred = numbers({.1, .9, .8, .05, .95, 0}, {2, 3});
  EXPECT_EQ(SparseTopKCategoricalAccuracy({.k = 2})(numbers({2, 2}), y_pred).item<double>(), 0.5);
  EXPECT_EQ(SparseTopKCategoricalAccuracy({.k = 3})(numbers({2, 7}), y_pred).item<double>(), 0.5);
  const Tensor one_hot = numbers({0, 0, 1, 0, 0, 1}, {2, 3});
  EXPECT_EQ(TopKCategoricalAccuracy({.k = 2})(one_hot, y_pred).item<double>(), 0.5);
  EXPECT_EQ(CategoricalAccuracy()(one_hot, y_pred).item<double>(), 0);
}

TEST(Errors, AreMeansOverAllExamples) {
  const Tensor y_true = numbers({0, 0, 0, 0}, {2, 2});
  const Tensor y_pred = numbers({3, 1, 1, 1}, {2, 2});
  EXPECT_EQ(MeanSquaredError()(y_true, y_pred).item<double>(), 3);
  EXPECT_EQ(MeanAbsoluteError()(y_true, y_pred, numbers({0, 1})).item<double>(), 1);
  EXPECT_NEAR(RootMeanSquaredError()(y_true, y_pred).item<double>(), std::sqrt(3), 1e-6);
  EXPECT_NEAR(CosineSimilarity()(y_pred, y_pred).item<double>(), 1, 1e-6);
  EXPECT_EQ(MeanSquaredError()(y_true, y_pred.to(int64)).item<double>(), 3);
}

TEST(MeanMetricWrapper, TakesAFunctionOfYourOwn) {
  const MeanMetricWrapper worst(
      [](const Tensor& y_true, const Tensor& y_pred) { return (y_true - y_pred).abs().amax(-1); },
      {.name = "worst"});
  worst.update_state(numbers({0, 0}, {1, 2}), numbers({2, 1}, {1, 2}));
  worst.update_state(numbers({0, 0}, {1, 2}), numbers({4, 1}, {1, 2}));
  EXPECT_EQ(value_of(worst), 3);
  EXPECT_EQ(worst.name(), "worst");
}

TEST(GetMetric, ANameAloneDoesNotMakeWhatNeedsMore) {
  EXPECT_EQ(get("BinaryIoU").name(), "binary_io_u");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("MeanIoU"); }),
              HasSubstr("metrics::MeanIoU(...)"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("MeanIuO"); }), HasSubstr("MeanIoU"));
}

TEST(GetMetric, IsCalledWhatItWasAskedForBy) {
  EXPECT_EQ(get("mae").name(), "mae");
  EXPECT_EQ(get("TopKCategoricalAccuracy").name(), "top_k_categorical_accuracy");
  EXPECT_EQ(get("AUC").name(), "auc");
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("acuracy"); }),
              AllOf(HasSubstr("'acuracy'"), HasSubstr("nearest is 'accuracy'")));
}

TEST(GetMetric, AccuracyChoosesItsFormByTheShapes) {
  const Tensor scores = numbers({.1, .6, .3, .05, .9, 0}, {2, 3});
  EXPECT_EQ(get("accuracy")(numbers({1, 0}), scores).item<double>(), 0.5);
  EXPECT_EQ(get("acc")(numbers({0, 1, 0, 1, 0, 0}, {2, 3}), scores).item<double>(), 0.5);
  EXPECT_EQ(get("accuracy")(numbers({1, 0}, {2, 1}), numbers({.7, .7}, {2, 1})).item<double>(),
            0.5);
  EXPECT_NEAR(get("ce")(numbers({1, 1}), scores).item<double>(),
              -(std::log(0.6) + std::log(0.9 / 0.95)) / 2, 1e-5);
}

TEST(ConfusionMetrics, AddUpOverReplicas) {
  const auto strategy = mirrored(3);
  const auto scope = strategy.scope();
  const Recall recall({.thresholds = {0.5, 0.8}});
  strategy.run([&](ReplicaContext& context) {
    const double mine = 0.3 * (context.replica_id_in_sync_group() + 1);  // 0.3, 0.6, 0.9
    recall.update_state(at::ones({1}), at::full({1}, mine));
  });
  EXPECT_THAT(elements(recall.result()), Pointwise(DoubleNear(1e-6), {2.0 / 3, 1.0 / 3}));
  EXPECT_THAT(elements(recall.variables()[0].components().value(1)), ElementsAre(1, 0));
}

TEST(ConfusionMetrics, AddUpOverTasks) {
  std::vector<double> areas(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto scope = strategy.scope();
    const AUC auc({.name = "auc"});
    strategy.run([&] {
      // Each task alone has labels of one kind only.
      auc.update_state(at::full({2}, task), numbers({.2 + task * .5, .3 + task * .5}));
    });
    areas[static_cast<size_t>(task)] = value_of(auc);
  });
  EXPECT_NEAR(areas[0], 1, 1e-6);
  EXPECT_EQ(areas[0], areas[1]);
}

TEST(ConfusionMetrics, RefuseWhatIsWrong) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { TruePositives({.thresholds = {1.5}}); }),
              AllOf(HasSubstr("TruePositives"), HasSubstr("1.5")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { TruePositives({.thresholds = {}}); }),
              HasSubstr("empty"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Precision({.top_k = 0}); }),
              HasSubstr("top_k is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { AUC({.num_thresholds = 1}); }),
              HasSubstr("num_thresholds is 1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { SparseTopKCategoricalAccuracy({.k = 0}); }),
              HasSubstr("k is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Precision()(at::ones({3}), at::ones({2})); }),
              AllOf(HasSubstr("precision"), HasSubstr("[3]"), HasSubstr("[2]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Precision({.class_id = 5})(at::ones({2, 3}), at::ones({2, 3}));
              }),
              HasSubstr("class_id is 5"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Precision({.top_k = 4})(at::ones({2, 3}), at::ones({2, 3}));
              }),
              HasSubstr("top_k is 4"));
}

}  // namespace
}  // namespace cohort::keras::metrics
