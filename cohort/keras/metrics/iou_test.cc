// Intersection over union, and means of tensors; tests/interop compares them with TensorFlow's.
#include "cohort/keras/metrics/iou.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::metrics {
namespace {

using distribute::mirrored;
using distribute::ReplicaContext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

double iou_of(const Metric& metric) { return metric.result().item<double>(); }

// Of the classes {0: 2 of 3, 1: 1 of 2}.
TEST(MeanIoU, IsTheMeanOverTheClassesThatOccur) {
  const MeanIoU two({.num_classes = 2});
  EXPECT_EQ(iou_of(two), 0);
  two.update_state(numbers({0, 0, 1, 1}), numbers({0, 1, 0, 1}));
  EXPECT_NEAR(iou_of(two), 1. / 3, 1e-6);
  const MeanIoU three({.num_classes = 3});
  three.update_state(numbers({0, 0, 1, 1}), numbers({0, 1, 0, 1}), numbers({0.3, 0.3, 0.3, 0.1}));
  EXPECT_NEAR(iou_of(three), (0.3 / (0.6 + 0.6 - 0.3) + 0.1 / (0.4 + 0.4 - 0.1)) / 2, 1e-6);
}

TEST(MeanIoU, IgnoresAClass) {
  const MeanIoU metric({.num_classes = 2, .ignore_class = -1});
  metric.update_state(numbers({0, -1, 1, 1}), numbers({0, 1, 0, 1}));
  EXPECT_NEAR(iou_of(metric), 0.5, 1e-6);
}

TEST(MeanIoU, RefusesWhatIsNoClass) {
  const MeanIoU metric({.num_classes = 2});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                metric.update_state(numbers({0, 2}), numbers({0, 0}));
              }),
              HasSubstr("label is class 2"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                metric.update_state(numbers({0, 1}), numbers({-1, 0}));
              }),
              HasSubstr("prediction is class -1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                metric.update_state(numbers({0, 1, 0}), numbers({1, 0}));
              }),
              HasSubstr("do not fit"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                metric.update_state(at::zeros({2}, at::kComplexFloat), numbers({1, 0}));
              }),
              HasSubstr("complex numbers"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MeanIoU({.num_classes = 0}); }),
              HasSubstr("num_classes is 0"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { IoU({.num_classes = 2, .target_class_ids = {2}}); }),
      HasSubstr("has 2"));
}

TEST(OneHotIoU, TakesTheLargestOfEach) {
  const Tensor y_true = numbers({0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, {4, 3});
  const Tensor y_pred = numbers({.2, .3, .5, .1, .2, .7, .5, .3, .1, .1, .4, .5}, {4, 3});
  const OneHotIoU metric({.num_classes = 3, .target_class_ids = {0, 2}});
  metric.update_state(y_true, y_pred, numbers({0.1, 0.2, 0.3, 0.4}));
  EXPECT_NEAR(iou_of(metric), 0.07142857, 1e-6);  // of Keras' documentation
}

TEST(OneHotMeanIoU, IsOfAllClasses) {
  const Tensor y_true = numbers({0, 0, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}, {4, 3});
  const Tensor y_pred = numbers({.2, .3, .5, .1, .2, .7, .5, .3, .1, .1, .4, .5}, {4, 3});
  const OneHotMeanIoU metric({.num_classes = 3});
  metric.update_state(y_true, y_pred, numbers({0.1, 0.2, 0.3, 0.4}));
  EXPECT_NEAR(iou_of(metric), 0.04761905, 1e-6);  // of Keras' documentation
  EXPECT_EQ(metric.name(), "one_hot_mean_io_u");
}

TEST(BinaryIoU, ComparesWithTheThreshold) {
  const BinaryIoU metric({.threshold = 0.3});
  metric.update_state(numbers({0, 1, 0, 1}), numbers({.1, .2, .4, .7}), numbers({.2, .3, .4, .1}));
  EXPECT_NEAR(iou_of(metric), 0.17361, 1e-4);  // of Keras' documentation
}

// metrics_v1_test's numbers: global batches 1 to 4 of labels x % 5 and predictions x % 3, and their
// classes' shares after each.
TEST(IoU, OfEachClassOverReplicas) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  std::vector<IoU> classes;
  for (int64_t id = 0; id < 5; ++id) {
    classes.emplace_back(IoUOptions{.num_classes = 5, .target_class_ids = {id}});
  }
  std::vector<std::vector<double>> shares;
  for (int64_t batch = 0; batch < 4; ++batch) {
    strategy.run([&](ReplicaContext& replica) {
      const int64_t first = 4 * batch + 2 * replica.replica_id_in_sync_group();
      const Tensor x = at::arange(first, first + 2, at::kLong);
      for (const IoU& one : classes) {
        one.update_state(at::remainder(x, 5), at::remainder(x, 3));
      }
    });
    auto& now = shares.emplace_back();
    for (const IoU& one : classes) now.push_back(iou_of(one));
  }
  const auto near = [](const std::vector<double>& expected) {
    return ::testing::Pointwise(::testing::DoubleNear(1e-6), expected);
  };
  EXPECT_THAT(shares[0], near({1. / 2, 1, 1, 0, 0}));
  EXPECT_THAT(shares[1], near({1. / 4, 1. / 4, 1. / 3, 0, 0}));
  EXPECT_THAT(shares[2], near({1. / 6, 1. / 6, 1. / 5, 0, 0}));
  EXPECT_THAT(shares[3], near({2. / 8, 1. / 7, 1. / 7, 0, 0}));
}

// The same test: after batch n [2n - 2, 2n - 1, 2n, 2n + 1].
TEST(MeanTensor, OverReplicas) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  const MeanTensor mean({2});
  EXPECT_THAT(elements(mean.result()), ElementsAre(0, 0));
  for (int batch = 0; batch < 3; ++batch) {
    strategy.run([&](ReplicaContext& replica) {
      const double first = 4 * batch + 2 * replica.replica_id_in_sync_group();
      mean.update_state(numbers({first, first + 1}));
    });
    EXPECT_THAT(elements(mean.result()), ElementsAre(2 * batch + 1, 2 * batch + 2));
  }
  mean.update_state(numbers({5, 6}), numbers({1, 0}));
  EXPECT_THAT(elements(mean.result()), ElementsAre(5, 6));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { mean.update_state(numbers({1})); }),
              HasSubstr("[2]"));
  EXPECT_THROW(MeanTensor({-1}), InvalidArgumentError);
}

TEST(MeanRelativeError, DividesByTheNormalizer) {
  const MeanRelativeError metric(numbers({1, 3, 2, 3}));
  metric.update_state(numbers({1, 3, 2, 3}), numbers({2, 4, 6, 8}));
  EXPECT_NEAR(iou_of(metric), 1.25, 1e-6);  // of Keras' documentation
  const MeanRelativeError zeros(numbers({0, 2}));
  zeros.update_state(numbers({1, 1}), numbers({2, 4}));
  EXPECT_NEAR(iou_of(zeros), 0.75, 1e-6);
  EXPECT_THROW(metric.update_state(numbers({1, 2}), numbers({1, 2})), InvalidArgumentError);
  EXPECT_THROW(MeanRelativeError{Tensor()}, InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::keras::metrics
