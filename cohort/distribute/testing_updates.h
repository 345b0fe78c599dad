// For tests: programs that update variables as optimizers do, the same under every strategy.
#pragma once

#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {

// As strategy_test_lib's _test_minimize_loss_eager: ten steps on (x * kernel - 1)^2, each an
// update by the sum of the replicas' gradients.
inline void minimize_loss(const Strategy& strategy) {
  const auto scope = strategy.scope();
  const StrategyExtended extended = strategy.extended();
  const Variable kernel(at::full({1, 1}, 0.25f), {.name = "kernel"});
  const Tensor one = at::ones({1, 1});
  const auto gradient_of = [&](const Tensor& x) {
    GradientTape tape;
    const Tensor y = at::matmul(x, kernel.value()).reshape({}) - 1;
    return tape.gradient(y * y, kernel);
  };
  double expected = 0.25;
  for (int step = 0; step < 10; ++step) {
    const double before = extended.read_var(kernel).item<double>();
    EXPECT_NEAR(before, expected, 1e-4);
    const auto gradients = extended.call_for_each_replica(gradient_of, one);
    const Mirrored<Tensor> sum = extended.reduce_to(ReduceOp::SUM, gradients, kernel);
    extended.update(
        kernel, [](Variable& v, const Tensor& gradient) { v.assign_sub(0.2 * gradient); }, sum);
    expected -= 0.2 * strategy.num_replicas_in_sync() * 2 * (expected - 1);
    EXPECT_LT(std::abs(extended.read_var(kernel).item<double>() - 1), std::abs(before - 1));
  }
  for (const Tensor& component : strategy.experimental_local_results(kernel)) {
    EXPECT_NEAR(component.item<double>(), expected, 1e-4);
  }
}

// Guide 002's: in a step, the replicas' updates 1, 2, .. are summed in merge_call, and added.
inline void update_by_hand(const Strategy& strategy) {
  auto scope = strategy.scope();
  const Variable v(number(1), {.name = "by_hand"});
  scope.close();
  strategy.run([&](ReplicaContext& context) {
    const Tensor update = number(1 + context.replica_id_in_sync_group());
    context.merge_call(
        [](Strategy& merged, const PerReplica<Tensor>& updates, const Variable& merged_v) {
          const auto sums = merged.extended().batch_reduce_to(ReduceOp::SUM, {{updates, merged_v}});
          merged.extended().update(
              merged_v, [](Variable& component, const Tensor& x) { component.assign_add(x); },
              sums[0]);
        },
        update, v);
  });
  const int n = strategy.num_replicas_in_sync();
  EXPECT_EQ(v.value().item<double>(), 1 + n * (n + 1) / 2);
}

}  // namespace cohort::distribute
