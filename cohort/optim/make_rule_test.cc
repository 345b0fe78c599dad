#include "cohort/optim/make_rule.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/testing_variable.h"
#include "cohort/optim/transformed.h"

namespace cohort::optim {
namespace {

TEST(MakeRule, MakesTheSameRuleAgain) {
  std::vector<std::unique_ptr<const UpdateRule>> rules;
  rules.push_back(make_sgd({.momentum = 0.5, .nesterov = true}));
  rules.push_back(make_adam({.beta_1 = 0.5, .beta_2 = 0.7, .epsilon = 1e-3, .amsgrad = true}));
  rules.push_back(make_rmsprop({.rho = 0.3, .momentum = 0.2, .epsilon = 1e-2, .centered = true}));
  rules.push_back(make_adagrad({.initial_accumulator_value = 0.3, .epsilon = 1e-2}));
  rules.push_back(make_adadelta({.rho = 0.5, .epsilon = 1e-2}));
  rules.push_back(make_adamax({.beta_1 = 0.4, .beta_2 = 0.6, .epsilon = 1e-2}));
  rules.push_back(make_nadam({.beta_1 = 0.4, .beta_2 = 0.6, .epsilon = 1e-2}));
  rules.push_back(make_lion({.beta_1 = 0.4, .beta_2 = 0.6}));
  rules.push_back(make_ftrl({.learning_rate_power = -0.4,
                             .initial_accumulator_value = 0.2,
                             .l1_regularization_strength = 0.01,
                             .l2_regularization_strength = 0.02,
                             .l2_shrinkage_regularization_strength = 0.03,
                             .beta = 0.1}));
  rules.push_back(make_transformed(
      make_adam(),
      {.clipvalue = 0.7, .weight_decay = 0.1, .ema_momentum = 0.5, .ema_overwrite_frequency = 2}));
  for (const auto& rule : rules) {
    const auto again = make_rule(rule->config());
    TestingVariable<float> first(*rule, {1, 2, 3}), second(*again, {1, 2, 3});
    for (int step = 0; step < 3; ++step) {
      first.step(*rule, 0.1, {0.5f, -1, 2});
      second.step(*again, 0.1, {0.5f, -1, 2});
    }
    EXPECT_EQ(first, second) << rule->name();
  }
}

TEST(MakeRule, RefusesWhatIsNoRule) {
  EXPECT_THROW(make_rule({"Adagrid", {}}), InvalidArgumentError);
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 0.}}}), InvalidArgumentError);
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 0.}, {"momentum", 0.}}}), InvalidArgumentError);
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 2.}, {"nesterov", 0.}}}), InvalidArgumentError);
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 0.}, {"nesterov", 0.}, {"x", 1.}}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::optim
