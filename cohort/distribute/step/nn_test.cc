#include "cohort/distribute/step/nn.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using distribute::ReduceOp;
using distribute::thrown;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;

Tensor numbers(std::initializer_list<float> values) {
  return at::tensor(at::ArrayRef<float>(values.begin(), values.end()));
}
double average(const Tensor& losses, const nn::AverageLossOptions& options = {}) {
  return nn::compute_average_loss(losses, options).item<double>();
}

TEST(ComputeAverageLoss, DividesByTheGlobalBatch) {
  EXPECT_THAT(average(numbers({1, 2, 3, 4, 5}), {.global_batch_size = 10}), DoubleNear(1.5, 1e-6));
  EXPECT_THAT(average(numbers({2.5, 6.2, 5})), DoubleNear(13.7 / 3, 1e-6));
}

TEST(ComputeAverageLoss, Weighs) {
  EXPECT_EQ(average(numbers({2, 4, 6}), {.sample_weight = at::full({}, 2)}), 8);
  EXPECT_THAT(average(numbers({2.5, 6.2, 5}), {.sample_weight = numbers({.3, .5, .2})}),
              DoubleNear((0.75 + 3.1 + 1) / 3, 1e-6));
  EXPECT_THAT(average(numbers({2, .5, 4, 1}).reshape({2, 2}),
                      {.sample_weight = numbers({.3, .7, .2, .8}).reshape({2, 2})}),
              DoubleNear(2.55 / 2, 1e-6));
  EXPECT_EQ(average(numbers({1, 2, 3, 4}).reshape({2, 2}), {.sample_weight = numbers({1, 0})}),
            1.5);
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                average(numbers({1, 2, 3}), {.sample_weight = numbers({1, 2})});
              }),
              AllOf(HasSubstr("[2]"), HasSubstr("[3]")));
}

TEST(ComputeAverageLoss, DefaultDenominatorIsReplicasTimesOwnRows) {
  const auto strategy = mirrored(2);
  const auto losses =
      strategy.run([](const Tensor& one) { return nn::compute_average_loss(one); },
                   PerReplica<Tensor>{numbers({2.5, 6.2, 5}), numbers({2.5, 6.2, 5})});
  EXPECT_THAT(strategy.reduce(ReduceOp::SUM, losses).item<double>(), DoubleNear(13.7 / 3, 1e-6));
  // Each replica by its own rows: 2 / (2 * 1) and (4 + 6) / (2 * 2).
  const auto uneven = strategy.run([](const Tensor& one) { return nn::compute_average_loss(one); },
                                   PerReplica<Tensor>{numbers({2}), numbers({4, 6})});
  EXPECT_EQ(uneven.value(0).item<double>(), 1);
  EXPECT_EQ(uneven.value(1).item<double>(), 2.5);
}

TEST(ComputeAverageLoss, GuideExample) {
  const auto strategy = mirrored(2);
  const auto losses = strategy.run(
      [](const Tensor& one) { return nn::compute_average_loss(one, {.global_batch_size = 4}); },
      PerReplica<Tensor>{numbers({2, 3}), numbers({4, 5})});
  EXPECT_EQ(losses.value(0).item<double>(), 1.25);
  EXPECT_EQ(losses.value(1).item<double>(), 2.25);
  EXPECT_EQ(strategy.reduce(ReduceOp::SUM, losses).item<double>(), 3.5);
}

TEST(ComputeAverageLoss, AnEmptyReplicaContributesZeroWithAGradient) {
  GradientTape tape;
  const Tensor losses = at::zeros({0});
  tape.watch(losses);
  const Tensor loss = nn::compute_average_loss(losses * 1);
  EXPECT_EQ(loss.item<double>(), 0);
  EXPECT_EQ(tape.gradient(loss, losses).numel(), 0);
  EXPECT_EQ(average(at::zeros({0}), {.global_batch_size = 8}), 0);
  EXPECT_EQ(average(numbers({1}), {.global_batch_size = 0}), 0);
}

TEST(ComputeAverageLoss, KeepsTheDtype) {
  EXPECT_EQ(nn::compute_average_loss(at::ones({2}, at::dtype(at::kDouble))).scalar_type(), float64);
  EXPECT_EQ(nn::compute_average_loss(at::ones({2}, at::dtype(at::kLong))).scalar_type(), int64);
}

TEST(ComputeAverageLoss, RefusesScalarsAndNegativeBatches) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { average(at::ones({})); }), HasSubstr("NONE"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { average(Tensor()); }), HasSubstr("undefined"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { average(numbers({1}), {.global_batch_size = -1}); }),
      HasSubstr("-1"));
}

TEST(ScaleRegularizationLoss, DividesByTheReplicas) {
  EXPECT_EQ(nn::scale_regularization_loss(numbers({1, 2})).item<double>(), 3);
  const auto strategy = mirrored(4);
  const auto losses = strategy.run([] { return nn::scale_regularization_loss(numbers({1, 3})); });
  EXPECT_EQ(losses.value(3).item<double>(), 1);
}

TEST(LossScaling, CrossReplicaContextIsRefused) {
  const auto strategy = mirrored(2);
  const auto scope = strategy.scope();
  EXPECT_THAT(thrown<FailedPreconditionError>([] { average(numbers({1})); }),
              HasSubstr("compute_average_loss"));
  EXPECT_THAT(thrown<FailedPreconditionError>([] { nn::scale_regularization_loss(numbers({1})); }),
              HasSubstr("scale_regularization_loss"));
}

TEST(AddN, AddsTensorsOfOneShape) {
  EXPECT_TRUE(add_n({numbers({1, 2}), numbers({3, 4}), numbers({5, 6})}).equal(numbers({9, 12})));
  EXPECT_THROW(add_n({}), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                add_n({numbers({1}), numbers({1, 2})});
              }),
              AllOf(HasSubstr("tensor 1"), HasSubstr("[2]")));
}

}  // namespace
}  // namespace cohort
