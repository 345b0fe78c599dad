#include "cohort/keras/metrics/best_threshold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::metrics {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using ::testing::HasSubstr;

double best_of(const Metric& metric) { return metric.result().item<double>(); }

const Tensor kTruth = numbers({0, 0, 0, 1, 1}, {5});
const Tensor kScores = numbers({0, 0.3, 0.8, 0.3, 0.8}, {5});
const Tensor kTruthWeights = numbers({1, 1, 2, 2, 1}, {5});

// The numbers of Keras' documentation.
TEST(BestThreshold, IsTheBestOfThoseThatAreGoodEnough) {
  const SensitivityAtSpecificity sensitivity(0.5);
  EXPECT_EQ(best_of(sensitivity), 0);
  sensitivity.update_state(kTruth, kScores);
  EXPECT_NEAR(best_of(sensitivity), 0.5, 1e-6);
  sensitivity.reset_state();
  sensitivity.update_state(kTruth, kScores, kTruthWeights);
  EXPECT_NEAR(best_of(sensitivity), 0.333333, 1e-5);

  const SpecificityAtSensitivity specificity(0.5);
  specificity.update_state(kTruth, kScores);
  EXPECT_NEAR(best_of(specificity), 0.66666667, 1e-6);
  specificity.reset_state();
  specificity.update_state(kTruth, kScores, numbers({1, 1, 2, 2, 2}));
  EXPECT_NEAR(best_of(specificity), 0.5, 1e-6);

  const PrecisionAtRecall precision(0.5);
  precision.update_state(kTruth, kScores);
  EXPECT_NEAR(best_of(precision), 0.5, 1e-6);
  precision.reset_state();
  precision.update_state(kTruth, kScores, numbers({2, 2, 2, 1, 1}));
  EXPECT_NEAR(best_of(precision), 0.333333, 1e-5);

  const RecallAtPrecision recall(0.8);
  recall.update_state(numbers({0, 0, 1, 1}), numbers({0, 0.5, 0.3, 0.9}));
  EXPECT_NEAR(best_of(recall), 0.5, 1e-6);
  recall.reset_state();
  recall.update_state(numbers({0, 0, 1, 1}), numbers({0, 0.5, 0.3, 0.9}), numbers({1, 0, 0, 1}));
  EXPECT_NEAR(best_of(recall), 1, 1e-6);
}

TEST(BestThreshold, CountsOverReplicas) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const SensitivityAtSpecificity metric(0.5, {.num_thresholds = 50});
  strategy.run([&](ReplicaContext& replica) {
    const bool first = replica.replica_id_in_sync_group() == 0;
    const int64_t begin = first ? 0 : 2, count = first ? 2 : 3;
    metric.update_state(kTruth.narrow(0, begin, count), kScores.narrow(0, begin, count));
  });
  EXPECT_NEAR(best_of(metric), 0.5, 1e-6);
}

TEST(BestThreshold, ChecksItsOptions) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { RecallAtPrecision(1.5); }),
              HasSubstr("precision is 1.5"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { PrecisionAtRecall(-1); }),
              HasSubstr("recall is -1"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { SensitivityAtSpecificity(0.5, {.num_thresholds = 0}); }),
      HasSubstr("num_thresholds is 0"));
}

}  // namespace
}  // namespace cohort::keras::metrics
