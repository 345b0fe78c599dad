// Gradients of variables that ps tasks keep: how late they are, and what is kept of them.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/keras/testing_served.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::keras {
namespace {

using distribute::ParameterServerStrategy;
using distribute::TestingCluster;
using distribute::coordinator::ClusterCoordinator;

// A set of them is as large as the model.
TEST(ServedGradients, NoGradientsAreKeptBetweenSteps) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::zeros({3}));
  const optimizers::SGD sgd({.learning_rate = 1});
  sgd.build({w});
  scope.close();
  const Tensor gradient = at::ones({3});
  const size_t before = gradient.storage().use_count();
  run_on_worker(strategy, 2, [&] { sgd.apply_gradients({{gradient, w}}); });
  EXPECT_EQ(gradient.storage().use_count(), before);
  EXPECT_TRUE(at::equal(w.value(), at::full({3}, -2.f)));
}

// Two workers take gradients by the same values: one update comes after the other.
void expect_staleness_of_two_steps(const std::function<Tensor(const Variable&)>& read) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable w(at::ones({3}), {.name = "w"});
  const optimizers::SGD optimizer({.learning_rate = 0.5});
  optimizer.build({w});
  scope.close();
  distribute::Gate gate;
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  EXPECT_EQ(coordinator.mean_staleness(), 0);
  for (int i = 0; i < 2; ++i) {
    coordinator.schedule([&] {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = read(w).sum();
        gate.pass();
        optimizer.minimize(loss, {w}, tape);
      });
    });
  }
  ASSERT_TRUE(gate.wait_for(2));
  gate.open();
  coordinator.join();
  EXPECT_EQ(coordinator.mean_staleness(), 0.5);
  EXPECT_TRUE(at::equal(w.value(), at::zeros({3})));
}

// Each worker updates with the gradients of its own calls, whatever others do meanwhile.
TEST(ServedGradients, GradientsAreAccumulatedByEachWorker) {
  const TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable w(at::zeros({2}));
  const Variable table(at::zeros({10, 2}));
  const optimizers::SGD sgd({.learning_rate = 1, .gradient_accumulation_steps = 3});
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  for (int call = 1; call <= 6; ++call) {
    distribute::Gate gate;
    for (int worker = 0; worker < 2; ++worker) {
      coordinator.schedule([&] {
        strategy.run([&] {
          GradientTape tape;
          const Tensor rows = table.sparse_read(at::tensor({call, 0}, int64));
          const Tensor loss = (w.value() * static_cast<double>(call)).sum() + rows.sum();
          gate.pass();  // both have read what there was
          sgd.minimize(loss, {w, table}, tape);
        });
      });
    }
    ASSERT_TRUE(gate.wait_for(2));
    gate.open();
    coordinator.join();
    EXPECT_EQ(sgd.iterations().value().item<int64_t>(), call / 3 * 2);
  }
  // Means of 1, 2, 3 and of 4, 5, 6, of two workers.
  EXPECT_TRUE(at::equal(w.value(), at::full({2}, -2.0 * (2 + 5))));
  Tensor rows = at::zeros({10, 2});
  rows.narrow(0, 1, 6).fill_(-2.0 / 3);
  rows[0].fill_(-4.0);
  EXPECT_TRUE(at::allclose(table.value(), rows));
}

TEST(ServedGradients, TheMeanStalenessIsThatOfTheGradients) {
  expect_staleness_of_two_steps([](const Variable& w) { return w.value(); });
}

TEST(ServedGradients, RowsHaveTheStalenessOfTheirLookup) {
  expect_staleness_of_two_steps(
      [](const Variable& w) { return w.sparse_read(at::arange(3, int64)); });
}

}  // namespace
}  // namespace cohort::keras
