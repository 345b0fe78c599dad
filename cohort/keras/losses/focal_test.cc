// Focal losses and ignored classes: Keras's examples and edges; tests/interop compares values and
// gradients with TensorFlow's.
#include "cohort/keras/losses/focal.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cohort/core/error.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/metrics/metrics.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::losses {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr Reduction kNone = Reduction::NONE;

TEST(BinaryFocalCrossentropy, GivesTheValuesOfKerasExample) {
  const Tensor y_true = numbers({0, 1, 0, 0}, {2, 2});
  const Tensor y_pred = numbers({0.6, 0.4, 0.4, 0.6}, {2, 2});
  EXPECT_THAT(elements(binary_focal_crossentropy(y_true, y_pred)),
              Pointwise(DoubleNear(1e-3), {0.330, 0.206}));
  const Tensor logits = numbers({-8.6, 0.51, 2.94, -12.8}, {4, 1});
  const Tensor labels = numbers({0, 1, 0, 0}, {4, 1});
  EXPECT_NEAR(
      BinaryFocalCrossentropy({.gamma = 2, .from_logits = true})(labels, logits).item<double>(),
      0.691, 1e-3);
  EXPECT_NEAR(
      BinaryFocalCrossentropy({.apply_class_balancing = true, .from_logits = true})(labels, logits)
          .item<double>(),
      0.51, 1e-2);
}

TEST(BinaryFocalCrossentropy, WithoutFocusIsBinaryCrossentropy) {
  const Tensor y_true = numbers({0, 1, 1}, {3, 1});
  const Tensor y_pred = numbers({0.3, 0.2, 0.9}, {3, 1});
  EXPECT_THAT(elements(BinaryFocalCrossentropy(
                  {.gamma = 0, .label_smoothing = 0.1, .reduction = kNone})(y_true, y_pred)),
              Pointwise(DoubleNear(1e-6),
                        elements(binary_crossentropy(y_true, y_pred, {.label_smoothing = 0.1}))));
}

TEST(CategoricalFocalCrossentropy, GivesTheValuesOfKerasExample) {
  const Tensor y_true = numbers({0, 1, 0, 0, 0, 1}, {2, 3});
  const Tensor y_pred = numbers({0.05, 0.9, 0.05, 0.1, 0.85, 0.05}, {2, 3});
  EXPECT_THAT(elements(categorical_focal_crossentropy(y_true, y_pred)),
              Pointwise(DoubleNear(1e-6), {2.63401289e-04, 6.75912094e-01}));
}

TEST(CategoricalFocalCrossentropy, WeighsClassesByAList) {
  const Tensor y_true = numbers({0, 1, 1, 0}, {2, 2});
  const Tensor y_pred = numbers({0.5, 0.5, 0.5, 0.5}, {2, 2});
  const double each = 0.25 * std::log(2);
  EXPECT_THAT(elements(categorical_focal_crossentropy(y_true, y_pred,
                                                      {.alpha = std::vector<double>{1, 3}})),
              Pointwise(DoubleNear(1e-6), {3 * each, each}));
}

TEST(CategoricalFocalCrossentropy, RefusesWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                categorical_focal_crossentropy(at::ones({2, 3}), at::ones({2, 3}),
                                               {.alpha = std::vector<double>{1, 2}});
              }),
              AllOf(HasSubstr("2 weights"), HasSubstr("3 classes")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                categorical_focal_crossentropy(numbers({1, 2}), at::ones({2, 3}));
              }),
              HasSubstr("one-hot"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                binary_focal_crossentropy(at::ones({2, 3}), at::ones({2, 3}), {.axis = 2});
              }),
              HasSubstr("axis 2"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { BinaryFocalCrossentropy({.label_smoothing = -1}); }),
      HasSubstr("label_smoothing is -1"));
}

TEST(FocalLosses, AreFoundByNameAndWritten) {
  EXPECT_EQ(get("binary_focal_crossentropy").name(), "binary_focal_crossentropy");
  const Config config = *get("CategoricalFocalCrossentropy").serialize();
  EXPECT_THAT(config.json(), AllOf(HasSubstr("\"alpha\":0.25"), HasSubstr("\"gamma\":2.0")));
}

// Keras's example.
TEST(IgnoreClass, LeavesExamplesOut) {
  const Tensor labels = at::tensor({0, 2, -1, -1, 0, 2, -1, -1}).reshape({2, 2, 2});
  const Tensor predictions = numbers(
      {1, 0, 0, 0, 0, 1, 0.2, 0.5, 0.3, 0, 1, 0, 1, 0, 0, 0, 0.5, 0.5, 0.2, 0.5, 0.3, 0, 1, 0},
      {2, 2, 2, 3});
  const SparseCategoricalCrossentropy each({.ignore_class = -1, .reduction = kNone});
  const Tensor losses = each(labels, predictions);
  EXPECT_THAT(elements(losses.flatten()),
              Pointwise(DoubleNear(1e-6), {2.3841855e-07, 2.3841855e-07, 0., 0., 2.3841855e-07,
                                           6.9314730e-01, 0., 0.}));
  // The mean is over those that count.
  EXPECT_NEAR(
      SparseCategoricalCrossentropy({.ignore_class = -1})(labels, predictions).item<double>(),
      0.69314730 / 4, 1e-6);
}

TEST(IgnoreClass, GivesNoGradientWhateverThePredictionIs) {
  const Tensor logits =
      numbers({1, 2, std::numeric_limits<double>::quiet_NaN(), 0}, {2, 2}).requires_grad_();
  GradientTape tape;
  const Tensor loss = SparseCategoricalCrossentropy(
      {.from_logits = true, .ignore_class = 255, .reduction = Reduction::SUM})(at::tensor({0, 255}),
                                                                               logits);
  EXPECT_TRUE(std::isfinite(loss.item<double>()));
  const Tensor gradient = tape.gradient(loss, std::vector<Tensor>{logits})[0];
  EXPECT_THAT(elements(gradient[1]), Pointwise(DoubleNear(0), {0, 0}));
  EXPECT_NE(gradient[0][0].item<double>(), 0);
}

TEST(IgnoreClass, IsNoPartOfAMetricsMean) {
  const metrics::SparseCategoricalCrossentropy metric({.ignore_class = 0});
  metric.update_state(at::tensor({0, 1, 1}), numbers({0.5, 0.5, 0.5, 0.5, 0.75, 0.25}, {3, 2}),
                      numbers({1, 1, 3}));
  EXPECT_NEAR(metric.result().number(), (std::log(2) + 3 * std::log(4)) / 4, 1e-6);
  EXPECT_THAT(metric.serialize()->json(), HasSubstr("\"ignore_class\":0"));
}

}  // namespace
}  // namespace cohort::keras::losses
