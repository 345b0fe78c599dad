#include "cohort/optim/make_rule.h"

#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/optim/adam.h"
#include "cohort/optim/rmsprop.h"
#include "cohort/optim/sgd.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

TEST(MakeRule, MakesTheSameRuleAgain) {
  std::vector<std::unique_ptr<const UpdateRule>> rules;
  rules.push_back(make_sgd({.momentum = 0.5, .nesterov = true}));
  rules.push_back(make_adam({.beta_1 = 0.5, .beta_2 = 0.7, .epsilon = 1e-3, .amsgrad = true}));
  rules.push_back(make_rmsprop({.rho = 0.3, .momentum = 0.2, .epsilon = 1e-2, .centered = true}));
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
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 2.}, {"nesterov", 0.}}}), InvalidArgumentError);
  EXPECT_THROW(make_rule({"SGD", {{"momentum", 0.}, {"nesterov", 0.}, {"x", 1.}}}),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::optim
