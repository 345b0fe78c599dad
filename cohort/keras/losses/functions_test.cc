#include "cohort/keras/losses/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/keras/losses/get.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::losses {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

// Each function gives what the loss gives that Keras knows under its name.
TEST(LossFunctions, AreTheLossesOfTheirNames) {
  using Function = Tensor (*)(const Tensor& y_true, const Tensor& y_pred);
  const std::vector<std::pair<const char*, Function>> all = {
      {"mean_squared_error", mean_squared_error},
      {"mean_absolute_error", mean_absolute_error},
      {"mean_absolute_percentage_error", mean_absolute_percentage_error},
      {"mean_squared_logarithmic_error", mean_squared_logarithmic_error},
      {"log_cosh", log_cosh},
      {"huber", [](const Tensor& y, const Tensor& p) { return huber(y, p); }},
      {"cosine_similarity",
       [](const Tensor& y, const Tensor& p) { return cosine_similarity(y, p); }},
      {"binary_crossentropy",
       [](const Tensor& y, const Tensor& p) { return binary_crossentropy(y, p); }},
      {"categorical_crossentropy",
       [](const Tensor& y, const Tensor& p) { return categorical_crossentropy(y, p); }},
      {"hinge", hinge},
      {"squared_hinge", squared_hinge},
      {"categorical_hinge", categorical_hinge},
      {"kl_divergence", kl_divergence},
      {"poisson", poisson}};
  const Tensor y = numbers({0, 1, 1, 0, 0, 1}, {2, 3});
  const Tensor p = numbers({0.1, 0.7, 0.2, 0.5, 0.25, 0.25}, {2, 3});
  for (const auto& [name, function] : all) {
    const Tensor losses = function(y, p);
    EXPECT_THAT(losses.sizes(), ElementsAre(2)) << name;
    EXPECT_TRUE(losses.equal(get(name, {.reduction = Reduction::NONE})(y, p))) << name;
  }
}

TEST(LossFunctions, TakeOptions) {
  const Tensor labels = numbers({1, 0});
  const Tensor logits = numbers({2, 1, 0, 3}, {2, 2});
  EXPECT_TRUE(sparse_categorical_crossentropy(labels, logits, {.from_logits = true})
                  .allclose(sparse_categorical_crossentropy(labels, logits.softmax(-1))));
  EXPECT_THAT(elements(huber(numbers({0}, {1, 1}), numbers({4}, {1, 1}), {.delta = 2})),
              ElementsAre(DoubleEq(6)));
  EXPECT_THAT(cosine_similarity(logits, logits, {.axis = 0}).sizes(), ElementsAre(2));
}

// They give each example's loss, so that nothing is divided by the batch of one replica.
TEST(LossFunctions, MayBeUsedUnderAStrategy) {
  const distribute::OneDeviceStrategy strategy("CPU:0");
  const auto scope = strategy.scope();
  EXPECT_THAT(elements(mean_squared_error(numbers({1}, {1, 1}), numbers({3}, {1, 1}))),
              ElementsAre(4));
}

}  // namespace
}  // namespace cohort::keras::losses
