// F scores, R2, and merging the states of metrics; tests/interop compares them with Keras's.
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::metrics {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

const Tensor& labels() {
  static const Tensor y_true = at::tensor({1, 1, 1, 1, 0, 0, 1, 1, 0}).reshape({3, 3});
  return y_true;
}
const Tensor& predictions() {
  static const Tensor y_pred = numbers({0.2, 0.6, 0.7, 0.2, 0.6, 0.6, 0.6, 0.8, 0.0}, {3, 3});
  return y_pred;
}

// Keras's examples.
TEST(FScores, GiveTheValuesOfKerasExamples) {
  const F1Score f1({.threshold = 0.5});
  f1.update_state(labels(), predictions());
  EXPECT_THAT(elements(f1.result()), Pointwise(DoubleNear(1e-6), {0.5, 0.8, 0.6666667}));
  const FBetaScore fbeta({.beta = 2, .threshold = 0.5});
  fbeta.update_state(labels(), predictions());
  EXPECT_THAT(elements(fbeta.result()),
              Pointwise(DoubleNear(1e-6), {0.3846154, 0.90909094, 0.8333334}));
}

TEST(FScores, AverageOverClasses) {
  const auto score = [](const char* average) {
    const F1Score f1({.average = average, .threshold = 0.5});
    f1.update_state(labels(), predictions());
    return f1.result().number();
  };
  EXPECT_NEAR(score("macro"), (0.5 + 0.8 + 0.6666667) / 3, 1e-6);
  EXPECT_NEAR(score("weighted"), (3 * 0.5 + 2 * 0.8 + 0.6666667) / 6, 1e-6);
  EXPECT_NEAR(score("micro"), 2 * 4. / (2 * 4 + 2 + 2), 1e-6);  // 4 hits, 2 false, 2 missed
}

TEST(FScores, WithoutAThresholdTakeTheLargestUnlessItIsZero) {
  const F1Score f1;
  f1.update_state(numbers({1, 0, 1, 0}, {2, 2}), numbers({0.9, 0.1, 0, 0}, {2, 2}));
  EXPECT_THAT(elements(f1.result()), Pointwise(DoubleNear(1e-6), {2. / 3, 0.}));
}

// Each replica brings its part; one of them has no rows.
TEST(FScores, AreOfAllReplicas) {
  const auto strategy = mirrored(3);
  const auto scope = strategy.scope();
  const F1Score f1({.threshold = 0.5});
  EXPECT_THAT(f1.variables(), IsEmpty());  // the number of classes is not known yet
  strategy.run([&](ReplicaContext& context) {
    const int64_t begin = context.replica_id_in_sync_group() == 0 ? 0 : 2;
    const int64_t end = context.replica_id_in_sync_group() == 0 ? 2 : 3;
    const bool none = context.replica_id_in_sync_group() == 2;
    f1.update_state(labels().slice(0, begin, none ? begin : end),
                    predictions().slice(0, begin, none ? begin : end));
  });
  EXPECT_THAT(elements(f1.result()), Pointwise(DoubleNear(1e-6), {0.5, 0.8, 0.6666667}));
  EXPECT_EQ(f1.variables().size(), 4u);
  f1.reset_state();
  EXPECT_THAT(elements(f1.result()), Pointwise(DoubleNear(0), {0, 0, 0}));
}

TEST(FScores, RefuseWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { F1Score({.average = "mean"}); }),
              HasSubstr("average is 'mean'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { FBetaScore({.beta = 0}); }),
              HasSubstr("beta is 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { F1Score({.threshold = 1.5}); }),
              HasSubstr("threshold is 1.5"));
  const F1Score f1;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { f1.update_state(at::ones({2}), at::ones({2})); }),
              HasSubstr("[batch, classes]"));
  f1.update_state(at::ones({2, 3}), at::ones({2, 3}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                f1.update_state(at::ones({2, 4}), at::ones({2, 4}));
              }),
              HasSubstr("before had 3"));
}

TEST(R2Score, GivesTheValueOfKerasExample) {
  const R2Score r2;
  r2.update_state(numbers({1, 4, 3}, {3, 1}), numbers({2, 4, 4}, {3, 1}));
  EXPECT_NEAR(r2.result().number(), 0.57142854, 1e-6);
  EXPECT_EQ(r2.variables()[0].dtype(), int32);
}

TEST(R2Score, AggregatesOutputsAndAdjusts) {
  const Tensor y_true = numbers({1, 0, 2, 2, 3, 4, 4, 12}, {4, 2});
  const Tensor y_pred = numbers({1, 1, 2, 2, 3, 5, 5, 11}, {4, 2});
  const auto score = [&](const R2ScoreOptions& options) {
    const R2Score r2(options);
    r2.update_state(y_true, y_pred);
    return r2.result();
  };
  const double first = 1 - 1. / 5, second = 1 - 3. / 83;
  EXPECT_THAT(elements(score({.class_aggregation = std::nullopt})),
              Pointwise(DoubleNear(1e-5), {first, second}));
  EXPECT_NEAR(score({}).number(), (first + second) / 2, 1e-5);
  EXPECT_NEAR(score({.class_aggregation = "variance_weighted_average"}).number(),
              (5 * first + 83 * second) / 88, 1e-5);
  // Each label of each output is a sample, as in Keras.
  EXPECT_NEAR(score({.num_regressors = 2}).number(), 1 - (1 - (first + second) / 2) * 7 / 5, 1e-5);
  EXPECT_NEAR(score({.num_regressors = 7}).number(), (first + second) / 2, 1e-5);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { R2Score({.num_regressors = -1}); }),
              HasSubstr("num_regressors is -1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { R2Score({.class_aggregation = "sum"}); }),
              HasSubstr("class_aggregation is 'sum'"));
}

TEST(MergeState, AddsWhatOthersHold) {
  const Accuracy first, second, third;
  first.update_state(numbers({1, 2}), numbers({0, 2}));
  second.update_state(numbers({3, 4}), numbers({3, 4}));
  second.merge_state({first, third});
  EXPECT_EQ(second.result().number(), 0.75);
  EXPECT_EQ(first.result().number(), 0.5);
}

TEST(MergeState, WorksUnderAStrategy) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Mean own("own"), other("other");
  strategy.run([&](ReplicaContext& context) {
    own.update_state(context.replica_id_in_sync_group());
    other.update_state(5);
  });
  own.merge_state({other});
  EXPECT_EQ(own.result().number(), (0 + 1 + 5 + 5) / 4.);
  EXPECT_THAT(
      thrown<FailedPreconditionError>([&] { strategy.run([&] { own.merge_state({other}); }); }),
      HasSubstr("merge_state()"));
}

TEST(MergeState, TakesAShapeThatWasNotKnown) {
  const F1Score own({.threshold = 0.5}), other({.threshold = 0.5});
  other.update_state(labels(), predictions());
  own.merge_state({other});
  EXPECT_THAT(elements(own.result()), Pointwise(DoubleNear(1e-6), {0.5, 0.8, 0.6666667}));
}

TEST(MergeState, RefusesOtherMetrics) {
  const Mean mean;
  const F1Score scores({.num_classes = 3}), fewer({.num_classes = 2});
  scores.update_state(labels(), predictions());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { mean.merge_state({scores}); }),
              AllOf(HasSubstr("f1_score"), HasSubstr("4 variables"), HasSubstr("has 2")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { fewer.merge_state({scores}); }),
              HasSubstr("true_positives"));
}

// Before the first update the metric waits for its values.
TEST(FScores, AreRestoredBeforeTheirShapeIsKnown) {
  const internal::TemporaryFolder folder;
  const std::string prefix = folder / "ckpt";
  const auto update = [](const F1Score& f1) { f1.update_state(labels(), predictions()); };
  const F1Score saved({.threshold = 0.5});
  update(saved);
  const std::string path = train::Checkpoint({{"f1", saved}}).write(prefix);
  const F1Score restored({.threshold = 0.5});
  train::Checkpoint({{"f1", restored}}).read(path);
  update(restored);
  update(saved);
  EXPECT_THAT(elements(restored.variables()[0].value()),
              Pointwise(DoubleNear(0), elements(saved.variables()[0].value())));
}

}  // namespace
}  // namespace cohort::keras::metrics
