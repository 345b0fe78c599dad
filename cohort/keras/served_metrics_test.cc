// Metrics whose sums ps tasks keep.
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "cohort/keras/testing_served.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::TestingCluster;
using distribute::coordinator::ClusterCoordinator;

TEST(ServedMetrics, AMetricIsReadAsItIsAtOneMomentWhileStepsGoOn) {
  const TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const metrics::Mean mean("mean");
  scope.close();
  const std::vector<Variable> sums = mean.variables();
  EXPECT_EQ(sums[0].device(), sums[1].device());
  const auto function =
      strategy.function("step", [&] { strategy.run([&] { mean.update_state(7.0); }); });
  const ClusterCoordinator coordinator(strategy);
  int torn = 0;
  for (int i = 0; i < 300; ++i) {
    coordinator.schedule(function);
    const double now = mean.result();
    torn += now != 0 && now != 7 ? 1 : 0;
  }
  coordinator.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(mean.result().number(), 7);
  EXPECT_EQ(sums[1].value().item<double>(), 300);
}

// TensorFlow's test_keras_metrics: by the coordinator, between steps.
TEST(ServedMetrics, MetricsCountBetweenSteps) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  const auto scope = strategy.scope();
  const metrics::FalsePositives positives({.thresholds = {0.2, 0.5, 0.7, 0.8}});
  const metrics::AUC auc({.num_thresholds = 10});
  positives.update_state(at::tensor({0.0, 1.0, 0.0, 0.0}), at::tensor({0.0, 0.0, 0.3, 0.9}));
  auc.update_state(at::tensor({0, 0, 1, 1}), at::tensor({0.0, 0.5, 0.3, 0.9}));
  EXPECT_TRUE(at::equal(positives.result().to(float64), at::tensor({2.0, 1.0, 1.0, 1.0}, float64)));
  EXPECT_EQ(auc.result().number(), 0.75);
  positives.reset_state();
  auc.reset_state();
  EXPECT_TRUE(at::equal(positives.result().to(float64), at::zeros({4}, float64)));
  EXPECT_EQ(auc.result().number(), 0);
}

// A batch without rows, which a worker's replica gets as well as others.
TEST(ServedMetrics, ABatchWithoutRowsAddsNothing) {
  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const metrics::MeanMetricWrapper largest(
      [](const Tensor& y_true, const Tensor& y_pred) { return (y_true - y_pred).max(); });
  run_on_worker(strategy, 1, [&] {
    for (const int64_t rows : {0, 2, 0})
      largest.update_state(at::zeros({rows}) + 3, at::zeros({rows}));
  });
  EXPECT_EQ(largest.result().number(), 3);
}

}  // namespace
}  // namespace cohort::keras
