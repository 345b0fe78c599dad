#include "cohort/optim/transformed.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TransformedTest, ClipsEachElementOfTheGradient) {
  const auto rule = make_transformed(make_sgd(), {.clipvalue = 0.5});
  TestingVariable<double> variable(*rule, {1, 1, 1});
  variable.step(*rule, 1, {3, -3, 0.25});
  EXPECT_EQ(variable.param, (std::vector<double>{0.5, 1.5, 0.75}));
}

TEST(TransformedTest, WeightsDecayBeforeTheStep) {
  const auto rule = make_transformed(make_sgd(), {.weight_decay = 0.5});
  TestingVariable<double> variable(*rule, {2});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.5, {1}), 2 - 2 * 0.5 * 0.5 - 0.5);
}

TEST(TransformedTest, AveragesFollowTheWeightsAndOverwriteThem) {
  const auto rule =
      make_transformed(make_sgd(), {.ema_momentum = 0.5, .ema_overwrite_frequency = 2});
  EXPECT_TRUE(rule->slots().at(0).starts_as_variable);
  TestingVariable<double> variable(*rule, {4});
  variable.slots.at(0).at(0) = 4;
  EXPECT_EQ(variable.step(*rule, 1, {2}), 2);
  EXPECT_EQ(variable.slots.at(0).at(0), 3);
  EXPECT_EQ(variable.step(*rule, 1, {1}), 2);  // the average of 3 and 1
  EXPECT_EQ(variable.step(*rule, 1, {1}), 1);
}

// Keras numbers the averages in a checkpoint before the formula's own slots.
TEST(TransformedTest, AveragesAreMadeBeforeOtherSlots) {
  const auto rule = make_transformed(make_rmsprop({.momentum = 0.5}), {.ema_momentum = 0.5});
  const auto lists = rule->slot_lists();
  EXPECT_EQ(lists.at(0).name, "_model_variables_moving_average");
  EXPECT_EQ(lists.at(0).walk, 0);
  EXPECT_EQ(lists.at(1).walk, 1);
  EXPECT_EQ(rule->slots().back().name, "average");
}

TEST(TransformedTest, IsTheRuleItselfWhereNothingIsAsked) {
  auto rule = make_sgd();
  const UpdateRule* own = rule.get();
  EXPECT_EQ(make_transformed(std::move(rule), {}).get(), own);
}

TEST(TransformedTest, LeavesOutDecayForThoseThatAreExcluded) {
  const auto rule = make_transformed(make_sgd(), {.clipvalue = 0.5, .weight_decay = 0.5});
  const auto without = without_weight_decay(*rule);
  TestingVariable<double> variable(*without, {2});
  EXPECT_DOUBLE_EQ(variable.step(*without, 0.5, {1}), 2 - 0.25);
  EXPECT_EQ(without_weight_decay(*without), nullptr);
  EXPECT_EQ(without_weight_decay(*make_sgd()), nullptr);
}

TEST(TransformedTest, RefusesInvalidOptions) {
  const auto message = [](const char* text) {
    return ThrowsMessage<InvalidArgumentError>(HasSubstr(text));
  };
  EXPECT_THAT([] { make_transformed(make_sgd(), {.clipvalue = -1}); }, message("clipvalue"));
  EXPECT_THAT([] { make_transformed(make_sgd(), {.weight_decay = -1}); }, message("weight_decay"));
  EXPECT_THAT([] { make_transformed(make_sgd(), {.ema_momentum = 1.5}); }, message("ema_momentum"));
  EXPECT_THAT([] { make_transformed(make_sgd(), {.ema_overwrite_frequency = 3}); },
              message("set use_ema"));
}

}  // namespace
}  // namespace cohort::optim
