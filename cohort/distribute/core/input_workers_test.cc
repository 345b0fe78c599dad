#include "cohort/distribute/core/input_workers.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char* const kTask = "/job:localhost/replica:0/task:0/device:CPU:";

template <class T>
std::string printed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(InputWorkers, AreOrderedPairsOfCanonicalDevices) {
  const InputWorkers workers = cpu_workers(2, 2);
  EXPECT_EQ(workers.num_workers(), 2);
  EXPECT_THAT(workers.worker_devices(),
              ElementsAre(kTask + std::string("0"), kTask + std::string("2")));
  EXPECT_THAT(workers.compute_devices_for_worker(1),
              ElementsAre(kTask + std::string("2"), kTask + std::string("3")));
  EXPECT_THROW(workers.compute_devices_for_worker(2), OutOfRangeError);
}

TEST(InputWorkers, LeaveOutJobAndTaskIfAsked) {
  const InputWorkers workers(
      {{.input_device = "/job:worker/task:1/cpu:0", .compute_devices = {"/job:worker/gpu:1"}}},
      {.canonicalize_devices = false});
  EXPECT_THAT(workers.worker_devices(), ElementsAre("/device:CPU:0"));
  EXPECT_THAT(workers.compute_devices_for_worker(0), ElementsAre("/device:GPU:1"));
}

TEST(InputWorkers, PrintAsAList) {
  EXPECT_EQ(printed(cpu_workers(2, 1)),
            "InputWorkers:{\n"
            "  0 /job:localhost/replica:0/task:0/device:CPU:0: "
            "('/job:localhost/replica:0/task:0/device:CPU:0',),\n"
            "  1 /job:localhost/replica:0/task:0/device:CPU:1: "
            "('/job:localhost/replica:0/task:0/device:CPU:1',)}");
  EXPECT_THAT(printed(cpu_workers(1, 2)), HasSubstr("CPU:0', '/job:"));
}

TEST(InputWorkers, AreChecked) {
  EXPECT_THROW(InputWorkers(std::vector<InputWorker>()), InvalidArgumentError);
  EXPECT_THROW((InputWorkers{{.input_device = "CPU:0", .compute_devices = {}}}),
               InvalidArgumentError);
  EXPECT_THROW((InputWorkers{{.input_device = "nothing", .compute_devices = {"CPU:0"}}}),
               InvalidArgumentError);
}

TEST(InputWorkers, OfAStrategyAreItsHosts) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_EQ(strategy.extended().input_workers(), cpu_workers(1, 2));
  const InputOptions per_replica{.experimental_replication_mode =
                                     InputReplicationMode::PER_REPLICA};
  const InputWorkers hosts = strategy.extended().input_workers(per_replica);
  EXPECT_THAT(hosts.worker_devices(),
              ElementsAre(kTask + std::string("0"), kTask + std::string("0")));
  EXPECT_THAT(hosts.compute_devices_for_worker(1), ElementsAre(kTask + std::string("1")));
  InputOptions on_device = per_replica;
  on_device.experimental_place_dataset_on_device = true;
  EXPECT_EQ(strategy.extended().input_workers(on_device), cpu_workers(2, 1));
  EXPECT_EQ(get_strategy().extended().input_workers(), cpu_workers(1, 1));
}

TEST(InputContext, WithoutReplicasIsRefused) {
  EXPECT_THROW((void)InputContext{.num_replicas_in_sync = 0}.get_per_replica_batch_size(8),
               InvalidArgumentError);
  EXPECT_THROW((void)InputContext{}.get_per_replica_batch_size(-8), InvalidArgumentError);
}

TEST(InputContext, DividesTheGlobalBatch) {
  const InputContext context{
      .num_input_pipelines = 2, .input_pipeline_id = 1, .num_replicas_in_sync = 6};
  EXPECT_EQ(context.get_per_replica_batch_size(12), 2);
  EXPECT_THROW(context.get_per_replica_batch_size(13), InvalidArgumentError);
}

TEST(InputContext, Prints) {
  EXPECT_EQ(printed(InputContext{.num_replicas_in_sync = 42}),
            "tf.distribute.InputContext(input pipeline id 0, total: 1)");
}

TEST(SeveralWorkers, ShareTheElementsOfADataset) {
  const MirroredStrategy strategy = mirrored(3);
  for (const auto policy : {AutoShardPolicy::DATA, AutoShardPolicy::AUTO}) {
    EXPECT_THAT(all(get_distributed_dataset(with_policy(Dataset::range(8).batch(4), policy),
                                            cpu_workers(3, 1), strategy)),
                ElementsAre("[0,1][2,3][]", "[4,5][6,7][]"));
  }
}

TEST(SeveralWorkers, AllSeeEverythingWithPolicyOff) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = get_distributed_dataset(
      with_policy(Dataset::range(6).batch(4), AutoShardPolicy::OFF), cpu_workers(2, 1), strategy);
  EXPECT_THAT(all(dataset), ElementsAre("[0,1][0,1]", "[2,3][2,3]", "[4][4]", "[5][5]"));
  EXPECT_EQ(dataset.cardinality(), 4);
}

TEST(SeveralWorkers, WithoutSplittingTakeElementsInTurn) {
  const MirroredStrategy strategy = mirrored(4);
  EXPECT_THAT(all(get_distributed_dataset(Dataset::range(9).batch(2), cpu_workers(2, 2), strategy,
                                          {.split_batches = false})),
              ElementsAre("[0,1][4,5][2,3][6,7]", "[8][][][]"));
}

TEST(SeveralWorkers, ReadWhatTheDatasetFunctionMakesForEach) {
  const MirroredStrategy strategy = mirrored(4);
  const InputWorkers workers = cpu_workers(2, 2);
  const std::vector<InputContext> contexts = {
      {.num_input_pipelines = 2, .input_pipeline_id = 0, .num_replicas_in_sync = 4},
      {.num_input_pipelines = 2, .input_pipeline_id = 1, .num_replicas_in_sync = 4}};
  const auto same = [](const InputContext&) { return Dataset::range(9).batch(2); };
  EXPECT_THAT(all(get_distributed_datasets_from_function(same, workers, contexts, strategy)),
              ElementsAre("[0,1][2,3][0,1][2,3]", "[4,5][6,7][4,5][6,7]", "[8][][8][]"));
  EXPECT_THROW(get_distributed_datasets_from_function(same, workers, {contexts[0]}, strategy),
               InvalidArgumentError);
}

TEST(SeveralWorkers, MayEndUnevenly) {
  const MirroredStrategy strategy = mirrored(2);
  const auto sharded = [](const InputContext& context) {
    return Dataset::range(14).batch(4).shard(context.num_input_pipelines,
                                             context.input_pipeline_id);
  };
  const auto dataset =
      get_distributed_datasets_from_function(sharded, cpu_workers(2, 1), contexts(2), strategy);
  EXPECT_THAT(all(dataset), ElementsAre("[0,1,2,3][4,5,6,7]", "[8,9,10,11][12,13]"));
}

TEST(SeveralWorkers, SeedRandomMapsDifferently) {
  const MirroredStrategy strategy = mirrored(2);
  const Dataset random = Dataset::range(4).batch(2).map(
      [](const random::RandomGenerator& generator, const Tensor&) {
        return generator.uniform({2}, {.maxval = 1000000, .dtype = int64});
      },
      {.seed = 3});
  const auto dataset = get_distributed_dataset(with_policy(random, AutoShardPolicy::OFF),
                                               cpu_workers(2, 1), strategy);
  for (const std::string& step : all(dataset)) {
    const size_t middle = step.find("][") + 1;
    EXPECT_NE(step.substr(0, middle), step.substr(middle));
  }
}

TEST(SeveralWorkers, MustFeedTheStrategysDevices) {
  const MirroredStrategy strategy = mirrored(4);
  const Dataset dataset = Dataset::range(8).batch(4);
  const auto refused = [&](const InputWorkers& workers) {
    try {
      get_distributed_dataset(dataset, workers, strategy);
    } catch (const InvalidArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused(cpu_workers(3, 1)), HasSubstr("4 replicas in sync cannot be divided by 3"));
  EXPECT_THAT(refused(cpu_workers(2, 1)), HasSubstr("worker 0 of 2 feeds 1"));
  EXPECT_THAT(refused({{.input_device = "CPU:0", .compute_devices = {"CPU:1", "CPU:0"}},
                       {.input_device = "CPU:2", .compute_devices = {"CPU:2", "CPU:3"}}}),
              HasSubstr("where replica 0 of the strategy is on"));
}

TEST(SeveralWorkers, FilesThatAreNotThereAreNotFound) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(
      get_distributed_dataset(with_policy(Dataset::range(8).batch(4), AutoShardPolicy::FILE),
                              cpu_workers(2, 1), strategy),
      NotFoundError);
}

TEST(SeveralWorkers, ExplainWhoReadsWhat) {
  const MirroredStrategy strategy = mirrored(2);
  const std::string text =
      get_distributed_dataset(Dataset::range(8).batch(4), cpu_workers(2, 1), strategy).explain();
  EXPECT_THAT(text, HasSubstr("2 input workers, AutoShardPolicy::AUTO, by DATA\n"));
  EXPECT_THAT(text, HasSubstr("worker 1 on /job:localhost/replica:0/task:0/device:CPU:1, for "
                              "/job:localhost/replica:0/task:0/device:CPU:1\n"
                              "prefetch(buffer_size=2, small_bytes=1048576)"));
  EXPECT_THAT(text, HasSubstr("  shard(num_shards=2, index=1, require_non_empty=true)"));
  EXPECT_THAT(text, HasSubstr("    split_batches(num_pieces=2)"));
}

TEST(DatasetFunctions, AreCalledOnceAWorker) {
  const MirroredStrategy strategy = mirrored(2);
  std::vector<std::string> calls;
  const auto dataset = strategy.distribute_datasets_from_function([&](const InputContext& context) {
    calls.push_back(printed(context));
    return Dataset::range(6).batch(context.get_per_replica_batch_size(4));
  });
  EXPECT_THAT(calls, ElementsAre("tf.distribute.InputContext(input pipeline id 0, total: 1)"));
  EXPECT_THAT(all(dataset), ElementsAre("[0,1][2,3]", "[4,5][]"));
  EXPECT_THAT(dataset.explain(), Not(HasSubstr("prefetch")));
  EXPECT_THAT(all(strategy.experimental_distribute_datasets_from_function(
                  [](const InputContext&) { return Dataset::range(2).batch(1); })),
              ElementsAre("[0][1]"));
}

TEST(DatasetFunctions, AreCalledOnceAReplicaIfAsked) {
  const MirroredStrategy strategy = mirrored(2);
  for (const bool on_device : {false, true}) {
    const auto dataset = strategy.distribute_datasets_from_function(
        [&](const InputContext& context) {
          EXPECT_EQ(context.num_input_pipelines, 2);
          return Dataset::range(10 * context.input_pipeline_id, 10 * context.input_pipeline_id + 4)
              .batch(2);
        },
        {.experimental_replication_mode = InputReplicationMode::PER_REPLICA,
         .experimental_place_dataset_on_device = on_device});
    EXPECT_THAT(all(dataset), ElementsAre("[0,1][10,11]", "[2,3][12,13]"));
  }
}

// They are no workers of their own: where every shape is known, a step that some replicas have no
// data for is left out.
TEST(DatasetFunctions, OnceAReplicaEndTogether) {
  const MirroredStrategy strategy = mirrored(2);
  const auto steps = [&](const data::BatchOptions& options) {
    const auto dataset = strategy.distribute_datasets_from_function(
        [&](const InputContext& context) {
          return Dataset::range(2 + 2 * context.input_pipeline_id).batch(2, options);
        },
        {.experimental_replication_mode = InputReplicationMode::PER_REPLICA});
    const std::vector<std::string> steps = all(dataset);
    EXPECT_EQ(dataset.cardinality(), std::ssize(steps));
    return steps;
  };
  EXPECT_THAT(steps({.drop_remainder = true}), ElementsAre("[0,1][0,1]"));
  EXPECT_THAT(steps({}), ElementsAre("[0,1][0,1]", "[][2,3]"));
}

// The first worker's part has no element that shows what elements look like.
TEST(InputWorkers, WithoutDataGetDummiesOfTheOthersKind) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = get_distributed_datasets_from_function(
      [](const InputContext& context) {
        return Dataset::range(2 * context.input_pipeline_id)
            .map([](const Tensor& x) { return x + 10; })
            .batch(1);
      },
      cpu_workers(2, 1), contexts(2), strategy);
  EXPECT_THAT(all(dataset), ElementsAre("[][10]", "[][11]"));
}

TEST(DatasetFunctions, CheckTheirOptions) {
  const MirroredStrategy strategy = mirrored(2);
  const auto with = [&](const InputOptions& options) {
    return strategy.distribute_datasets_from_function(
        [](const InputContext&) { return Dataset::range(4).batch(2); }, options);
  };
  EXPECT_THROW(with({.experimental_place_dataset_on_device = true}), InvalidArgumentError);
  EXPECT_THROW(with({.experimental_per_replica_buffer_size = -1}), InvalidArgumentError);
}

TEST(DatasetFunctions, UnderOtherStrategiesFeedOneReplica) {
  const auto one = [](const InputContext&) { return Dataset::range(3).batch(2); };
  EXPECT_THAT(all(get_strategy().distribute_datasets_from_function(one)),
              ElementsAre("[0,1]", "[2]"));
  LogicalCpus cpus(1);
  EXPECT_THAT(all(OneDeviceStrategy("CPU:0").distribute_datasets_from_function(one)),
              ElementsAre("[0,1]", "[2]"));
}

}  // namespace
}  // namespace cohort::distribute
