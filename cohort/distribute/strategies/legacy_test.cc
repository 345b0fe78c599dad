#include "cohort/distribute/strategies/legacy.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/observe/monitoring.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using ::testing::ElementsAre;

TEST(LegacyInput, MakesIteratorsOverDatasets) {
  const MirroredStrategy strategy = mirrored(2);
  InputIterator input = strategy.make_dataset_iterator(Dataset::range(4).batch(2));
  const auto doubled = [](const Tensor& x) { return 2 * x; };
  const auto run = [&] {
    const auto results = strategy.experimental_run(doubled, input);
    return std::pair(results.value(0).item<int64_t>(), results.value(1).item<int64_t>());
  };
  EXPECT_EQ(run(), std::pair(int64_t{0}, int64_t{2}));
  EXPECT_EQ(run(), std::pair(int64_t{4}, int64_t{6}));
  EXPECT_THROW(input.get_next(), OutOfRangeError);
  input.initialize();
  EXPECT_EQ(text(input.get_next()), "[0][1]");
}

TEST(LegacyInput, MakesIteratorsFromFunctions) {
  const MirroredStrategy strategy = mirrored(2);
  const auto input_fn = [](const InputContext& context) {
    return Dataset::range(4)
        .batch(context.get_per_replica_batch_size(2))
        .shard(context.num_input_pipelines, context.input_pipeline_id);
  };
  InputIterator input = strategy.make_input_fn_iterator(input_fn);
  EXPECT_EQ(text(input.get_next()), "[0][1]");
  EXPECT_THROW(strategy.make_input_fn_iterator(input_fn, InputReplicationMode::PER_REPLICA),
               InvalidArgumentError);
}

TEST(LegacyInput, IsNotCountedAsDistributedDatasets) {
  const auto calls = [] {
    int64_t sum = 0;
    for (const auto* function : {"distribute_dataset", "distribute_datasets_from_function"}) {
      sum += monitoring::value("distribution_strategy_input_api_counter",
                               {"MirroredStrategy", function});
    }
    return sum;
  };
  const MirroredStrategy strategy = mirrored(2);
  const Dataset dataset = Dataset::range(4).batch(2);
  const int64_t before = calls();
  strategy.make_dataset_iterator(dataset);
  strategy.make_input_fn_iterator([&](const InputContext&) { return dataset; });
  EXPECT_EQ(calls(), before);
  strategy.experimental_distribute_dataset(dataset);
  EXPECT_EQ(calls(), before + 1);
}

TEST(LegacySteps, RunOverAnIteratorAndKeepTheLastOutputs) {
  const MirroredStrategy strategy = mirrored(2);
  InputIterator input = strategy.make_dataset_iterator(Dataset::range(12).batch(4));
  std::vector<std::string> seen;
  const auto step = [&](MultiStepContext& context, const PerReplica<Structure>& batch) {
    EXPECT_TRUE(in_cross_replica_context());
    seen.push_back(text(batch));
    const auto sums = strategy.run([](const Tensor& x) { return x.sum(); }, batch);
    context.set_last_step_output("each", sums);
    context.set_last_step_output("total", sums, ReduceOp::SUM);
    strategy.run(
        [&](ReplicaContext& replica, const Tensor& x) {
          context.set_last_step_output(replica, "merged", x.sum(), ReduceOp::SUM);
        },
        batch);
  };
  const auto context = strategy.extended().experimental_run_steps_on_iterator(step, input, 2);
  EXPECT_THAT(seen, ElementsAre("[0,1][2,3]", "[4,5][6,7]"));
  EXPECT_EQ(context.last_step_outputs().at("each").value(1).item<int64_t>(), 13);
  EXPECT_EQ(context.last_step_outputs().at("total").item().item<int64_t>(), 22);
  EXPECT_EQ(context.last_step_outputs().at("merged").item().item<int64_t>(), 22);
  EXPECT_THROW(strategy.extended().experimental_run_steps_on_iterator(step, input, 2),
               OutOfRangeError);
  EXPECT_THROW(strategy.extended().experimental_run_steps_on_iterator(step, input, 0),
               InvalidArgumentError);
}

// Takes half of the mean gradient off each variable.
struct HalfSteps {
  void apply_gradients(const std::vector<std::pair<Tensor, Variable>>& gradients) const {
    for (const auto& [gradient, variable] : gradients) {
      Variable(variable).assign_sub(0.5 * gradient);
    }
  }
};

TEST(LegacyInput, ArraysBecomeTheirRows) {
  const MirroredStrategy strategy = mirrored(2);
  const data::Dataset rows = strategy.experimental_make_numpy_dataset(at::ones({4, 3}));
  EXPECT_EQ(rows.cardinality(), 4);
  EXPECT_EQ(rows.iterator().get_next().tensor().sizes(), at::IntArrayRef({3}));
}

TEST(LegacySteps, KeepValuesOfAnyTypeAndThoseTheyBeganWith) {
  const MirroredStrategy strategy = mirrored(2);
  InputIterator input = strategy.make_dataset_iterator(Dataset::range(8).batch(4));
  const auto step = [&](MultiStepContext& context, const PerReplica<Structure>& batch) {
    EXPECT_TRUE(context.last_step_outputs().contains("begin"));
    context.set_non_tensor_output("kind", std::string("step"));
    strategy.run(
        [&](ReplicaContext& replica, const Tensor& x) {
          context.set_non_tensor_output(replica, "sizes", x.numel());
          context.set_last_step_output(replica, "own", x.sum());
        },
        batch);
  };
  const auto context = strategy.extended().experimental_run_steps_on_iterator(
      step, input, 2, {{"begin", PerReplica<Tensor>({at::ones({})})}});
  EXPECT_EQ(context.last_step_outputs().at("begin").item().item<double>(), 1);
  EXPECT_EQ(context.last_step_outputs().at("own").value(0).item<int64_t>(), 4 + 5);
  EXPECT_EQ(context.last_step_outputs().at("own").value(1).item<int64_t>(), 6 + 7);
  EXPECT_EQ(std::any_cast<std::string>(context.non_tensor_outputs().at("kind")), "step");
  const auto sizes = std::any_cast<std::vector<std::any>>(context.non_tensor_outputs().at("sizes"));
  ASSERT_EQ(sizes.size(), 2);
  EXPECT_EQ(std::any_cast<int64_t>(sizes[1]), 2);
}

// Both batches of a call are trained on.
TEST(LegacySteps, OfOneCallMayBeSeveral) {
  const MirroredStrategy strategy = mirrored(2);
  Variable weight = [&] {
    auto scope = strategy.scope();
    return Variable(at::zeros({}), {.aggregation = VariableAggregation::MEAN});
  }();
  int losses = 0;
  StandardSingleLossStep step([] { return Dataset::from_tensors(at::ones({1})).repeat(); },
                              [&](MultiStepContext&, const Structure& x) {
                                if (get_replica_context()->replica_id_in_sync_group() == 0) {
                                  ++losses;
                                }
                                return -weight.value() * x.tensor().sum();
                              },
                              HalfSteps{}, [&] { return std::vector<Variable>{weight}; }, strategy,
                              {.iterations_per_step = 3});
  step();
  EXPECT_EQ(losses, 3);
  EXPECT_EQ(weight.value().item<double>(), 1.5);
}

TEST(LegacySteps, TrainWithASingleLoss) {
  const MirroredStrategy strategy = mirrored(2);
  Variable weight = [&] {
    auto scope = strategy.scope();
    return Variable(at::zeros({}), {.aggregation = VariableAggregation::MEAN});
  }();
  StandardSingleLossStep step([] { return Dataset::from_tensors(at::ones({1})).repeat(); },
                              [&](MultiStepContext&, const Structure& x) {
                                const Tensor error = weight.value() * x.tensor().sum() - 1;
                                return error * error;
                              },
                              HalfSteps{}, [&] { return std::vector<Variable>{weight}; }, strategy,
                              {.iterations_per_step = 1});
  step.initialize();
  step();
  EXPECT_EQ(weight.value().item<double>(), 1);
  step();
  EXPECT_EQ(weight.value().item<double>(), 1);
}

}  // namespace
}  // namespace cohort::distribute
