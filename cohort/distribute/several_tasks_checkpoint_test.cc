// The tasks of a strategy save and restore one checkpoint.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "cohort/collective/testing_members.h"
#include "cohort/data/dataset.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/distribute/testing_topology.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using collective::message_of;
using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using SeveralTasksCheckpoint = data::FilesTest;

TEST_F(SeveralTasksCheckpoint, IsWrittenOnceAndRestoredByAll) {
  std::vector<Tensor> drawn(4);
  run_all_tasks(2, 2, [&](const Strategy& strategy, int task) {
    std::optional<Scope> scope(strategy.core());
    const Variable weight(at::full({3}, 1.5), {.name = "weight"});
    const Variable count(number(0), {.name = "count",
                                     .synchronization = VariableSynchronization::ON_READ,
                                     .aggregation = VariableAggregation::SUM});
    scope.reset();
    train::Checkpoint checkpoint({{"weight", weight}, {"count", count}, {"strategy", strategy}});
    const auto draw = [&] {
      return strategy.run([](ReplicaContext&) { return random::normal({2}); });
    };
    draw();
    strategy.run([&](ReplicaContext& context) {
      count.assign_add(number(context.replica_id_in_sync_group() + 1));
    });
    const std::string path = checkpoint.save(directory + "/ckpt");
    EXPECT_EQ(path, directory + "/ckpt-1");
    const auto next = draw();
    weight.assign(at::zeros({3}));
    checkpoint.restore(path).assert_consumed();
    EXPECT_TRUE(at::equal(weight.value(), at::full({3}, 1.5)));
    EXPECT_EQ(count.value().item<double>(), 10);
    // Every replica goes on with its own random numbers, whichever task it is in.
    const auto again = draw();
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(at::equal(again.value(i), next.value(i)));
      drawn[static_cast<size_t>(2 * task) + i] = next.value(i);
    }
  });
  EXPECT_FALSE(at::equal(drawn[0], drawn[2]));
  EXPECT_FALSE(at::equal(drawn[1], drawn[3]));
  int data_files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename();
    EXPECT_EQ(name.find("tmp"), std::string::npos) << name;
    if (name.find(".data-") != std::string::npos) ++data_files;
  }
  EXPECT_EQ(data_files, 1);
}

// An ON_READ variable whose replicas hold 0.1, 0.2, ..: no sum of them can be divided into them.
Variable tenths(const Strategy& strategy, VariableAggregation aggregation) {
  std::optional<Scope> scope(strategy.core());
  const Variable variable(at::zeros({2}), {.name = "tenths",
                                           .synchronization = VariableSynchronization::ON_READ,
                                           .aggregation = aggregation});
  scope.reset();
  strategy.run([&](ReplicaContext& replica) {
    variable.assign(0.1 * (replica.replica_id_in_sync_group() + 1));
  });
  return variable;
}

std::vector<float> first_elements(const Variable& variable) {
  std::vector<float> values;
  const auto components = variable.components();
  for (const Tensor& one : components.values()) values.push_back(one[0].item<float>());
  return values;
}

TEST_F(SeveralTasksCheckpoint, AsManyReplicasInWhateverTasksGetTheirComponentsBack) {
  constexpr Topology kTopologies[] = {{1, 4}, {2, 2}, {4, 1}};
  for (const auto aggregation : {VariableAggregation::SUM, VariableAggregation::MEAN,
                                 VariableAggregation::ONLY_FIRST_REPLICA}) {
    for (const Topology& saved : kTopologies) {
      const std::string path = directory + "/ckpt";
      run_all_tasks(saved.tasks, saved.replicas_each, [&](const Strategy& strategy, int) {
        train::Checkpoint({{"v", tenths(strategy, aggregation)}}).write(path);
      });
      for (const Topology& here : kTopologies) {
        run_all_tasks(here.tasks, here.replicas_each, [&](const Strategy& strategy, int) {
          const Variable variable = tenths(strategy, aggregation);
          const std::vector<float> before = first_elements(variable);
          variable.assign(at::full({2}, 8.0f));
          train::Checkpoint({{"v", variable}}).read(path).assert_consumed();
          EXPECT_EQ(first_elements(variable), before);
        });
      }
    }
  }
}

TEST_F(SeveralTasksCheckpoint, OtherNumbersOfReplicasShareTheAggregate) {
  const std::string path = directory + "/ckpt";
  run_all_tasks(2, 2, [&](const Strategy& strategy, int) {
    train::Checkpoint({{"v", tenths(strategy, VariableAggregation::SUM)}}).write(path);
  });
  run_all_tasks(2, 1, [&](const Strategy& strategy, int) {
    const Variable variable = tenths(strategy, VariableAggregation::SUM);
    train::Checkpoint({{"v", variable}}).read(path).expect_partial();
    EXPECT_THAT(first_elements(variable), ElementsAre(0.5f));
  });
  const Variable plain(at::zeros({2}));
  train::Checkpoint({{"v", plain}}).read(path).expect_partial();
  EXPECT_EQ(plain.value()[0].item<float>(), 1.0f);
}

TEST_F(SeveralTasksCheckpoint, EveryTaskGoesOnWhereItStoodInItsOwnShard) {
  std::vector<std::string> read[2], again[2];
  run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    const auto dataset =
        strategy.distribute_datasets_from_function([&](const InputContext& context) {
          return Dataset::range(20)
              .shard(2, context.input_pipeline_id)
              .shuffle(4, {.seed = 3})
              .batch(2);
        });
    DistributedIterator iterator = dataset.iterator();
    iterator.next();
    train::Checkpoint checkpoint({{"input", iterator}});
    const std::string path = checkpoint.save(directory + "/ckpt");
    read[task] = all(iterator);
    checkpoint.restore(path).assert_consumed();
    again[task] = all(iterator);
  });
  EXPECT_EQ(read[0].size(), 4u);
  EXPECT_NE(read[0], read[1]);
  EXPECT_EQ(read[0], again[0]);
  EXPECT_EQ(read[1], again[1]);
}

TEST_F(SeveralTasksCheckpoint, AWriterThatCannotWriteFailsOnAll) {
  const auto errors = run_tasks(2, 1, [&](const Strategy& strategy, int) {
    std::optional<Scope> scope(strategy.core());
    const Variable weight(at::ones({3}), {.name = "weight"});
    scope.reset();
    train::Checkpoint checkpoint({{"weight", weight}});
    checkpoint.save("/proc/no such directory/ckpt");
  });
  for (const auto& error : errors) EXPECT_NE(error, nullptr);
  EXPECT_EQ(message_of<Error>(errors[0]), message_of<Error>(errors[1]));
}

}  // namespace
}  // namespace cohort::distribute
