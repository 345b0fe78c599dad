// Variables that keep their size where weights decay.
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/optimizers/optimizers.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::optimizers {
namespace {

using distribute::mirrored;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Variable named(const char* name) { return Variable(numbers({1, 1}), {.name = name}); }

// One step of a gradient of zeros, after which only decay is left.
std::vector<double> decayed(const Optimizer& optimizer, const std::vector<Variable>& variables) {
  GradientsAndVariables gradients;
  for (const Variable& variable : variables) gradients.emplace_back(at::zeros({2}), variable);
  optimizer.apply_gradients(gradients);
  std::vector<double> firsts;
  for (const Variable& variable : variables) firsts.push_back(elements(variable.value())[0]);
  return firsts;
}

TEST(ExcludeFromWeightDecay, TakesVariablesAndPartsOfNames) {
  const std::vector<Variable> all = {named("dense/kernel"), named("dense/bias"), named("gamma")};
  const SGD sgd({.learning_rate = 1, .weight_decay = 0.5});
  sgd.exclude_from_weight_decay({all[2]}, {"bias", "never"});
  EXPECT_THAT(decayed(sgd, all), ElementsAre(0.5, 1, 1));
}

TEST(ExcludeFromWeightDecay, IsReplacedByTheNextCall) {
  const std::vector<Variable> all = {named("kernel"), named("bias")};
  const SGD sgd({.learning_rate = 1, .weight_decay = 0.5});
  sgd.exclude_from_weight_decay(all);
  sgd.exclude_from_weight_decay({}, {"kern"});
  EXPECT_THAT(decayed(sgd, all), ElementsAre(1, 0.5));
}

TEST(ExcludeFromWeightDecay, HoldsForAllReplicasAndKindsOfUpdates) {
  for (const double global_clipnorm : {0., 10.}) {
    const auto strategy = mirrored(2);
    const auto scope = strategy.scope();
    const std::vector<Variable> all = {named("kernel"), named("bias")};
    const AdamW adam({.learning_rate = 0.1,
                      .global_clipnorm = global_clipnorm,
                      .weight_decay = 0.5,
                      .use_ema = true});
    adam.exclude_from_weight_decay({}, {"bias"});
    strategy.run([&] {
      adam.apply_gradients({{at::zeros({2}), all[0]}, {at::zeros({2}), all[1]}});
    });
    EXPECT_THAT(elements(all[0].value()), Pointwise(DoubleNear(1e-6), {0.95, 0.95}));
    EXPECT_THAT(elements(all[1].value()), ElementsAre(1, 1));
  }
}

// A rule without decay leaves rows without a gradient alone.
TEST(ExcludeFromWeightDecay, TouchesOnlyTheRowsOfASparseGradient) {
  const Variable table(at::ones({4, 2}), {.name = "table"});
  const SGD sgd({.learning_rate = 1, .weight_decay = 0.5});
  sgd.exclude_from_weight_decay({table});
  const Tensor rows =
      at::sparse_coo_tensor(at::tensor({1}, int64).reshape({1, 1}), at::ones({1, 2}), {4, 2});
  sgd.apply_gradients({{rows, table}});
  EXPECT_THAT(elements(table.value()), ElementsAre(1, 1, 0, 0, 1, 1, 1, 1));
}

TEST(ExcludeFromWeightDecay, RefusesWhatComesTooLate) {
  const SGD sgd({.weight_decay = 0.5});
  sgd.build({named("kernel")});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { sgd.exclude_from_weight_decay({}); }),
              HasSubstr("before build"));
}

}  // namespace
}  // namespace cohort::keras::optimizers
