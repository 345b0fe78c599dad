// Input of programs that call run by themselves, with the numbers of TensorFlow's
// custom_training_loop_input_test.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_strategies.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using ::testing::ElementsAre;

Dataset slices(std::initializer_list<NumberLiteral> rows) {
  return Dataset::from_tensor_slices(Structure(constant(rows)));
}

// The rows of all replicas of this process, one after another.
std::vector<double> rows_of(const Strategy& strategy, const PerReplica<Structure>& batch) {
  std::vector<double> rows;
  for (const Structure& piece : strategy.experimental_local_results(batch)) {
    const Tensor& tensor = piece.tensor();
    for (int64_t i = 0; i < tensor.size(0); ++i) rows.push_back(tensor[i].item<double>());
  }
  return rows;
}

// testDatasetDistributeEvenlyDivisibleDrop, ..NotDivisibleDrop and ..EvenlyDivisibleNoDrop.
TEST(CustomLoopInput, DroppedRemaindersLeaveNoReplicasRowsOut) {
  under_local_strategies([](const Strategy& strategy) {
    const auto first = [&](const Dataset& dataset) {
      auto iterator = strategy.experimental_distribute_dataset(dataset).iterator();
      return rows_of(strategy, iterator.get_next());
    };
    EXPECT_THAT(first(slices({5., 6.}).batch(2, {.drop_remainder = true})), ElementsAre(5, 6));
    EXPECT_THAT(first(slices({5., 6.}).batch(1, {.drop_remainder = true})), ElementsAre(5));
    EXPECT_THAT(first(slices({5., 6.}).batch(2)), ElementsAre(5, 6));
  });
}

// testMultiDeviceDataCapturedFunction: 10 on one replica, 7.5 on two.
TEST(CustomLoopInput, AStepUsesWhatTheProgramCaptured) {
  under_local_strategies([](const Strategy& strategy) {
    const Tensor inputs = constant({2., 3.});
    auto iterator = strategy
                        .distribute_datasets_from_function([inputs](const InputContext&) {
                          return Dataset::from_tensor_slices(Structure(inputs)).repeat(5);
                        })
                        .iterator();
    const auto scope = strategy.scope();
    const Variable var(constant(1.));
    double mean = 0;
    for (int step = 0; step < 2; ++step) {
      const auto outputs =
          strategy.run([&](const Tensor& x) { return x * x + var.value(); }, iterator.get_next());
      mean = strategy.reduce(ReduceOp::MEAN, outputs).item<double>();
    }
    EXPECT_EQ(mean, strategy.num_replicas_in_sync() == 1 ? 10 : 7.5);
  });
}

// testDynamicShapes, testDynamicShapesWithSizeOp, testStrategyReduceWithDynamicShapes and ..Rank2.
TEST(CustomLoopInput, PiecesMayDifferInSize) {
  under_local_strategies([](const Strategy& strategy) {
    const auto next = [&](const Dataset& dataset) {
      return strategy.experimental_distribute_dataset(dataset.batch(4)).iterator().get_next();
    };
    const auto batch = next(slices({5., 6., 7.}));
    const auto tensors = strategy.run([](const Tensor& x) { return x; }, batch);
    EXPECT_EQ(strategy.reduce(ReduceOp::MEAN, tensors, 0).item<double>(), 6);
    if (strategy.num_replicas_in_sync() == 2) {
      EXPECT_THAT(values(strategy.run([](const Tensor& x) { return x.mean(); }, batch)),
                  ElementsAre(5.5, 7));
      EXPECT_EQ(tensors.value(0).numel(), 2);
      EXPECT_EQ(tensors.value(1).numel(), 1);
    }
    const auto rank_2 = next(Dataset::from_tensor_slices(Structure(at::ones({3, 2}))));
    const auto rows = strategy.run([](const Tensor& x) { return x; }, rank_2);
    EXPECT_TRUE(strategy.reduce(ReduceOp::MEAN, rows, 0).equal(at::ones({2})));
  });
}

// test_variable_run_argument: what was a variable is one in the step.
TEST(CustomLoopInput, VariablesArriveAsVariables) {
  under_every_strategy([](const Strategy& strategy) {
    auto scope = strategy.scope();
    const Variable v(constant(1.), {.aggregation = VariableAggregation::MEAN});
    scope.close();
    const auto same = strategy.run(
        [](const Variable& variable, const Tensor& x) {
          variable.assign_add(x);
          return variable;
        },
        v, constant(2.));
    EXPECT_TRUE(same == v);
    EXPECT_EQ(v.value().item<double>(), 3);
  });
}

// testDatasetOutOfRange: 26.
TEST(CustomLoopInput, EveryRowCountsUntilTheEnd) {
  under_local_strategies([](const Strategy& strategy) {
    auto scope = strategy.scope();
    const Variable a(constant(0.), {.aggregation = VariableAggregation::SUM});
    scope.close();
    auto iterator =
        strategy.experimental_distribute_dataset(slices({5., 6., 7., 8.}).batch(2)).iterator();
    const auto step = [&](const Tensor& x) { a.assign_add(x.sum()); };
    EXPECT_THROW(
        {
          for (int i = 0; i < 100; ++i) strategy.run(step, iterator.get_next());
        },
        OutOfRangeError);
    EXPECT_EQ(a.value().item<double>(), 26);
  });
}

// testDatasetIterationInFunction: two steps, a product of means of 165, and 1 + 2 steps.
TEST(CustomLoopInput, ADatasetIsReadTwice) {
  under_local_strategies([](const Strategy& strategy) {
    auto scope = strategy.scope();
    const Variable a(constant(1.), {.aggregation = VariableAggregation::ONLY_FIRST_REPLICA});
    scope.close();
    const auto dataset =
        strategy.experimental_distribute_dataset(slices({5., 6., 7., 8.}).batch(2));
    int steps = 0;
    double product = 2;
    for (const auto& batch : dataset) {
      ++steps;
      const auto x = strategy.run([](const Tensor& rows) { return rows; }, batch);
      product *= strategy.reduce("MEAN", x, 0).item<double>();
    }
    for (const auto& batch : dataset) {
      strategy.run([&](const Tensor&) { a.assign_add(1.0); }, batch);
    }
    EXPECT_EQ(steps, 2);
    EXPECT_NEAR(product, 2 * 5.5 * 7.5, 1e-3);
    EXPECT_EQ(a.value().item<double>(), 3);
  });
}

}  // namespace
}  // namespace cohort::distribute
