#include "cohort/keras/metrics/metrics.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::metrics {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using distribute::ReplicaContext;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

double result(const Metric& metric) { return metric.result().item<double>(); }

TEST(Mean, AveragesEverythingItGets) {
  const Mean mean;
  EXPECT_EQ(result(mean), 0);
  mean.update_state(numbers({1, 3, 5}));
  mean.update_state(7.0);
  EXPECT_EQ(result(mean), 4);
  mean.reset_states();
  EXPECT_EQ(result(mean), 0);
  mean.update_state(numbers({}, {0, 3}));
  EXPECT_EQ(result(mean), 0);
}

TEST(Mean, Weighs) {
  const auto weighted = [](const Tensor& values, const Tensor& weights) {
    const Mean mean;
    mean.update_state(values, weights);
    return result(mean);
  };
  EXPECT_EQ(weighted(numbers({1, 3, 5, 7}), numbers({1, 1, 0, 0})), 2);
  EXPECT_EQ(weighted(numbers({1, 3}), numbers({2}, {})), 2);
  EXPECT_EQ(weighted(numbers({1, 3}), numbers({0}, {})), 0);
  EXPECT_EQ(weighted(numbers({1, 3, 3, 5}, {2, 2}), numbers({3, 1})), 2.5);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                weighted(numbers({1, 2}), numbers({1, 2, 3}));
              }),
              HasSubstr("[3]"));
}

TEST(Mean, CountsEachValueThatAWeightHoldsFor) {
  const Mean mean;
  mean.update_state(numbers({1, 3, 3, 5}, {2, 2}), numbers({3, 1}));
  EXPECT_EQ(mean.variables()[0].value().item<double>(), 20);
  EXPECT_EQ(mean.variables()[1].value().item<double>(), 8);
  mean.update_state(numbers({0, 0}));
  EXPECT_EQ(result(mean), 2);
}

TEST(Mean, AveragesOverTwoDimensionsThatWeightsLack) {
  const Mean mean;
  mean.update_state(numbers({1, 3, 3, 5, 2, 2, 2, 2}, {2, 2, 2}), numbers({3, 1}));
  EXPECT_EQ(mean.variables()[0].value().item<double>(), 3 * 3 + 2);
  EXPECT_EQ(mean.variables()[1].value().item<double>(), 4);
}

TEST(Sum, AddsUpOverTwoDimensionsThatWeightsLack) {
  const Sum sum;
  sum.update_state(numbers({1, 3, 3, 5, 2, 2, 2, 2}, {2, 2, 2}), numbers({3, 1}));
  EXPECT_EQ(result(sum), 3 * 12 + 8);
}

TEST(BinaryAccuracy, CountsElements) {
  const BinaryAccuracy accuracy;
  accuracy.update_state(numbers({1, 1, 0, 1}, {2, 2}), numbers({1, 0, 0, 1}, {2, 2}));
  EXPECT_EQ(accuracy.variables()[1].value().item<double>(), 4);
  accuracy.update_state(numbers({1, 1, 1}), numbers({1, 0, 0}));
  EXPECT_DOUBLE_EQ(result(accuracy), static_cast<float>(4 / 7.0));
}

TEST(Mean, CallUpdatesAndReturns) {
  const Mean mean;
  EXPECT_EQ(mean(numbers({1, 3})).item<double>(), 2);
  EXPECT_EQ(mean(numbers({8})).item<double>(), 4);
}

TEST(Metrics, MayBeGivenANameAlone) {
  EXPECT_EQ(Mean("train_loss").name(), "train_loss");
  EXPECT_EQ(SparseCategoricalAccuracy(std::string("accuracy")).name(), "accuracy");
  EXPECT_EQ(RootMeanSquaredError("error").name(), "error");
  EXPECT_EQ(Mean({.name = "loss"}).name(), "loss");
}

TEST(Mean, CopiesAreTheSameMetric) {
  const Mean mean;
  const Mean copy = mean;
  copy.update_state(5.0);
  EXPECT_EQ(result(mean), 5);
}

TEST(Sum, AddsEverythingItGets) {
  const Sum sum;
  sum.update_state(numbers({1, 3}));
  sum.update_state(numbers({5, 7}), numbers({0, 2}));
  EXPECT_EQ(result(sum), 18);
}

TEST(Accuracy, CountsEqualValues) {
  const Accuracy accuracy;
  accuracy.update_state(numbers({1, 2, 3, 4}, {4, 1}), numbers({0, 2, 3, 4}, {4, 1}));
  EXPECT_EQ(result(accuracy), 0.75);
  accuracy.reset_state();
  accuracy.update_state(numbers({1, 2, 3, 4}), numbers({0, 2, 3, 4}), numbers({1, 1, 0, 0}));
  EXPECT_EQ(result(accuracy), 0.5);
}

TEST(SparseCategoricalAccuracy, TakesTheLargestPrediction) {
  const SparseCategoricalAccuracy accuracy;
  const Tensor y_pred = numbers({.1, .6, .3, .05, .95, 0}, {2, 3});
  accuracy.update_state(numbers({2, 1}, {2, 1}), y_pred);
  EXPECT_EQ(result(accuracy), 0.5);
  accuracy.reset_state();
  accuracy.update_state(numbers({2, 1}, {2}, uint8), y_pred, numbers({.7, .3}));
  EXPECT_THAT(result(accuracy), DoubleNear(0.3, 1e-6));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                accuracy.update_state(numbers({1, 2, 3}), y_pred);
              }),
              HasSubstr("[2,3]"));
}

TEST(SparseCategoricalAccuracy, ALabelWithAFractionIsNoClass) {
  const SparseCategoricalAccuracy accuracy;
  const Tensor y_pred = numbers({1, 2, 3, 1, 2, 3}, {2, 3});
  EXPECT_EQ(accuracy(numbers({2, 2.9}), y_pred).item<double>(), 0.5);
}

TEST(SparseCategoricalAccuracy, LabelsMayHaveMoreDimensions) {
  const SparseCategoricalAccuracy accuracy;
  accuracy.update_state(numbers({1, 0, 1, 1}, {1, 2, 2}),
                        numbers({0, 1, 1, 0, 1, 0, 0, 1}, {1, 2, 2, 2}));
  EXPECT_EQ(result(accuracy), 0.75);
}

TEST(BinaryAccuracy, ComparesWithItsThreshold) {
  const BinaryAccuracy accuracy;
  const Tensor y_true = numbers({1, 1, 0, 0}, {4, 1});
  const Tensor y_pred = numbers({.98, 1, 0, .6}, {4, 1});
  accuracy.update_state(y_true, y_pred);
  EXPECT_EQ(result(accuracy), 0.75);
  const BinaryAccuracy strict({.threshold = 0.7});
  strict.update_state(y_true, y_pred);
  EXPECT_EQ(result(strict), 1);
}

// The guide's example: scaled losses 1.25 and 2.25 of two replicas, total 3.5 over a count of 2.
TEST(Metrics, AggregateOverReplicas) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Mean mean({.name = "train_loss"});
  strategy.run([&](const Tensor& loss) { mean.update_state(loss); },
               PerReplica<Tensor>{numbers({1.25}, {}), numbers({2.25}, {})});
  EXPECT_EQ(mean.variables()[0].name(), "train_loss/total");
  EXPECT_EQ(mean.variables()[0].value().item<double>(), 3.5);
  EXPECT_EQ(mean.variables()[1].value().item<double>(), 2);
  EXPECT_EQ(result(mean), 1.75);
  EXPECT_EQ(mean.variables()[0].components().value(1).item<double>(), 2.25);
  mean.reset_state();
  EXPECT_EQ(mean.variables()[0].components().value(1).item<double>(), 0);
}

TEST(MetricResult, CountsWithNumbersOfEveryType) {
  const MetricResult half(at::full({}, 0.5));
  EXPECT_EQ(static_cast<double>(half * 100), 50);
  EXPECT_EQ(static_cast<double>(half * size_t{100}), 50);
  EXPECT_EQ(static_cast<double>(100LL * half), 50);
  EXPECT_EQ(static_cast<double>(half / 2U), 0.25);
  EXPECT_EQ(static_cast<double>(1UL - half), 0.5);
}

TEST(Metrics, ResultInAStepIsThatOfAllReplicas) {
  const auto strategy = mirrored(3);
  const auto results = strategy.run([mean = Mean()](ReplicaContext& context) {
    return mean(at::full({}, static_cast<double>(context.replica_id_in_sync_group())));
  });
  for (const Tensor& one : results.values()) EXPECT_EQ(one.item<double>(), 1);
}

TEST(Metrics, MadeBeforeTheScopeTheyStillCount) {
  const Mean mean;
  const auto strategy = mirrored(2);
  strategy.run([&] { mean.update_state(numbers({1, 3})); });
  EXPECT_EQ(result(mean), 2);
  EXPECT_EQ(mean.variables()[1].value().item<double>(), 4);
}

// TensorFlow's test_update_keras_metric_outside_strategy_scope_cross_replica.
TEST(Metrics, UpdatedBetweenStepsTheyCountOnce) {
  const Mean outside;
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Mean inside;
  const Sum sum;
  for (int i = 0; i < 10; ++i) {
    outside.update_state(i);
    inside.update_state(numbers({i - 1.0, i + 1.0}));
    sum.update_state(numbers({1.0 * i}));
  }
  EXPECT_EQ(result(outside), 4.5);
  EXPECT_EQ(result(inside), 4.5);
  EXPECT_EQ(result(sum), 45);
  EXPECT_EQ(outside.variables()[1].value().item<double>(), 10);
  // Beside what the replicas count.
  strategy.run([&] { sum.update_state(numbers({10})); });
  EXPECT_EQ(result(sum), 65);
  sum.reset_state();
  EXPECT_EQ(result(sum), 0);
}

TEST(Metrics, UpdatedBetweenStepsTheyHaveThresholds) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const FalsePositives metric({.thresholds = {0.2, 0.5, 0.7, 0.8}});
  metric.update_state(numbers({0, 1, 0, 0}), numbers({0, 0, 0.3, 0.9}));
  EXPECT_TRUE(at::equal(metric.result(), numbers({2, 1, 1, 1})));
}

TEST(Metrics, UpdatedBetweenStepsByEachTaskTheyCountOnce) {
  distribute::run_all_tasks(2, 2, [](const distribute::Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const Mean mean;
    const Sum sum;
    for (int i = 0; i < 10; ++i) {
      mean.update_state(i);
      sum.update_state(numbers({1.0 * i}));
    }
    EXPECT_EQ(result(mean), 4.5);
    EXPECT_EQ(result(sum), 45);
  });
}

TEST(Metrics, UpdatesInAStepAreLocal) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Mean mean;
  // Replica 1 does not update at all: nobody waits for it.
  strategy.run([&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 0) mean.update_state(8.0);
  });
  EXPECT_EQ(result(mean), 8);
}

TEST(Metrics, ResetInAStepIsRefused) {
  const auto strategy = mirrored(2);
  const Mean mean;
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run([&] { mean.reset_state(); }); }),
              HasSubstr("'mean'"));
}

CustomMetricOptions f1_options() {
  return {.name = "f1",
          .sums = {"hits", "predicted", "actual"},
          .update =
              [](const Tensor& y_true, const Tensor& y_pred, const Tensor&) {
                const Tensor chosen = y_pred.gt(0.5).to(y_pred.scalar_type());
                return std::vector<Tensor>{(chosen * y_true).sum(), chosen.sum(), y_true.sum()};
              },
          .result =
              [](const std::vector<Tensor>& sums) {
                return 2 * sums[0] / (sums[1] + sums[2]).clamp_min(1);
              }};
}

TEST(CustomMetric, IsComputedFromSumsOverAllReplicas) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const CustomMetric f1(f1_options());
  EXPECT_EQ(result(f1), 0);
  strategy.run([&](ReplicaContext& context) {
    const bool first = context.replica_id_in_sync_group() == 0;
    // Together: 3 predicted, 4 actual, 2 hits.
    f1.update_state(first ? numbers({1, 1}) : numbers({1, 0, 1}),
                    first ? numbers({0.9, 0.8}) : numbers({0.1, 0.7, 0.2}));
  });
  EXPECT_NEAR(result(f1), 4. / 7, 1e-6);
  ASSERT_EQ(f1.variables().size(), 3);
  EXPECT_EQ(f1.variables()[0].value().item<double>(), 2);
  f1.reset_state();
  EXPECT_EQ(result(f1), 0);
}

// What a reset leaves in the sums is no number that a result shows.
TEST(Metrics, ResultsWithoutDataAreNotBelowZero) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Sum sum;
  const auto sign = [&] { return std::signbit(sum.result().item<double>()); };
  EXPECT_FALSE(sign());
  sum.update_state(numbers({1}));
  sum.reset_state();
  EXPECT_FALSE(sign());
  EXPECT_EQ(result(sum), 0);
}

// Of the result without data nothing is reported.
TEST(Metrics, UpdatesOfMinusZeroCount) {
  const auto counts = [](const Metric& metric) {
    return dynamic_cast<internal::MetricState&>(*metric.trackable()).result_if_any().has_value();
  };
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, std::vector<int64_t>{2}}) {
    for (const DType dtype : {float32, float64}) {
      const CustomMetric lowest(
          {.name = "lowest",
           .sums = {"a", "b"},
           .update =
               [&](const Tensor&, const Tensor&, const Tensor&) {
                 return std::vector<Tensor>(2, at::full(shape, -0.0, dtype));
               },
           .result = [](const std::vector<Tensor>& sums) { return sums[0].sum(); },
           .shape = shape});
      EXPECT_FALSE(counts(lowest));
      lowest.update_state(numbers({1}), numbers({1}));
      EXPECT_TRUE(counts(lowest));
      lowest.reset_state();
      EXPECT_FALSE(counts(lowest));
    }
  }
  const Sum sum;
  sum.update_state(at::full({}, -0.0F));
  EXPECT_TRUE(counts(sum));
}

TEST(CustomMetric, RefusesWhatDoesNotFit) {
  const auto refused = [](const CustomMetricOptions& options) {
    return thrown<InvalidArgumentError>(
        [&] { CustomMetric(options).update_state(numbers({1}), numbers({1})); });
  };
  CustomMetricOptions options = f1_options();
  options.sums = {};
  EXPECT_THAT(refused(options), HasSubstr("sums is empty"));
  options.sums = {"a", "b", "a"};
  EXPECT_THAT(refused(options), HasSubstr("two sums are called 'a'"));
  options.sums = {"a", "b"};
  EXPECT_THAT(refused(options), HasSubstr("returned 3 tensors for 2 sums"));
  options = f1_options();
  options.shape = {2};
  EXPECT_THAT(refused(options), HasSubstr("for the sum 'hits', which has the shape [2]"));
  options.result = {};
  EXPECT_THAT(refused(options), HasSubstr("result is missing"));
}

}  // namespace
}  // namespace cohort::keras::metrics
