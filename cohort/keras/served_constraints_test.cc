// Constraints of variables that ps tasks keep.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/testing_served.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::TestingCluster;

// The same text model on ps tasks, in two shards, and without a strategy.
TEST(ServedConstraints, HoldAsOnOneDevice) {
  const auto make = [] {
    return Sequential(
        {layers::Embedding(100, 4,
                           {.embeddings_initializer = initializers::RandomUniform({.seed = 1}),
                            .embeddings_constraint = constraints::MaxNorm(0.05, {1})}),
         layers::GlobalAveragePooling1D(),
         layers::Dense(2, {.kernel_initializer = initializers::GlorotUniform({.seed = 2}),
                           .kernel_constraint = constraints::UnitNorm(),
                           .bias_constraint = "non_neg"})});
  };
  const auto step = [](const Sequential& model, const optimizers::Optimizer& optimizer) {
    const Tensor ids = at::tensor({3, 97, 3, 50, 3, 51}, int64).reshape({2, 3});
    GradientTape tape;
    const Tensor error = model(ids, {.training = true}) + 1;
    optimizer.minimize((error * error).sum(), model.trainable_variables(), tape);
  };
  const Sequential alone = make();
  const optimizers::SGD optimizer({.learning_rate = 0.1});
  for (int i = 0; i < 3; ++i) step(alone, optimizer);

  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver(), kTwoShards);
  auto scope = strategy.scope();
  const Sequential served = make();
  served(at::zeros({1, 3}, int64));
  const optimizers::SGD on_ps({.learning_rate = 0.1});
  on_ps.build(served.trainable_variables());
  scope.close();
  run_on_worker(strategy, 3, [&] { step(served, on_ps); });
  expect_equal(values(served.trainable_variables()), values(alone.trainable_variables()));
  const Tensor table = served.variables()[0].value();
  EXPECT_TRUE(table.square().sum(1).sqrt().le(0.0501).all().item<bool>());
  // A kernel whose norms span its rows is in one part.
  EXPECT_EQ(served.variables()[0].shards().size(), 2u);
  EXPECT_EQ(served.variables()[1].shards().size(), 1u);
}

TEST(ServedConstraints, AStepSeesThem) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::ones({3}), {.constraint = constraints::NonNeg()});
  const optimizers::SGD sgd({.learning_rate = 1});
  sgd.build({w});
  scope.close();
  Tensor seen;
  run_on_worker(strategy, 1, [&] {
    sgd.apply_gradients({{at::full({3}, 2.f), w}});
    seen = w.value().detach().clone();
  });
  EXPECT_TRUE(seen.equal(at::zeros({3})));
  EXPECT_TRUE(w.value().equal(at::zeros({3})));
}

TEST(ServedConstraints, FunctionsOfTheProgramAreRefused) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  EXPECT_THAT(thrown<UnimplementedError>([] {
                const Variable w(at::ones({3}),
                                 {.name = "w", .constraint = [](const Tensor& x) { return x; }});
              }),
              ::testing::HasSubstr("the constraint of variable 'w' is a function"));
}

}  // namespace
}  // namespace cohort::keras
