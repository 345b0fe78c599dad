// What replicas read that tasks host: pieces of the same batches, whichever task they are on.
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "cohort/core/text.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A line for each step: what each replica gets.
using Steps = std::vector<std::string>;

void read(const Strategy& strategy, DistributedIterator& iterator, int most, Steps& steps) {
  for (int i = 0; i < most; ++i) {
    auto batch = iterator.next();
    if (!batch) return;
    const auto all = strategy.run(
        [](ReplicaContext& replica, const Tensor& x) {
          const Tensor id = at::full_like(x, replica.replica_id_in_sync_group());
          return at::stack({id, x}, 1);
        },
        *batch);
    std::string text;
    const Tensor rows = strategy.gather(all, 0);
    for (int64_t row = 0; row < rows.size(0); ++row) {
      text += internal::str(row == 0 ? "" : " ", rows[row][0].item<int64_t>(), ":",
                            rows[row][1].item<int64_t>());
    }
    steps.push_back(text);
  }
}

TasksOptions hosting(int replicas) { return {.elastic_replicas = replicas}; }

TEST(Pieces, PieceIIsReplicaIs) {
  for (const int tasks : {1, 2, 3}) {
    run_all_tasks(
        tasks, 1,
        [](const Strategy& strategy, int) {
          const auto dataset =
              strategy.experimental_distribute_dataset(data::Dataset::range(11).batch(8));
          EXPECT_EQ(dataset.cardinality(), 2);
          DistributedIterator iterator = dataset.iterator();
          Steps steps;
          read(strategy, iterator, 10, steps);
          EXPECT_THAT(steps, ElementsAre("0:0 0:1 1:2 1:3 2:4 2:5 3:6 3:7", "0:8 1:9 2:10"));
        },
        hosting(4));
  }
}

TEST(Pieces, PositionsAreThoseOfReplicas) {
  run_all_tasks(
      2, 1,
      [](const Strategy& strategy, int task) {
        const auto dataset =
            strategy.experimental_distribute_dataset(data::Dataset::range(12).batch(3));
        DistributedIterator iterator = dataset.iterator();
        iterator.next();
        iterator.next();
        EXPECT_EQ(iterator.positions(),
                  (task == 0 ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{5}));
      },
      hosting(3));
}

using MakeIterator = std::function<DistributedIterator(const Strategy&)>;

// Steps of a reader that is saved after three of them on some tasks and goes on on others.
void expect_resume(const MakeIterator& make) {
  Steps undisturbed;
  run_all_tasks(
      1, 1,
      [&](const Strategy& strategy, int) {
        DistributedIterator iterator = make(strategy);
        read(strategy, iterator, 100, undisturbed);
      },
      hosting(6));
  ASSERT_GT(undisturbed.size(), 4u);
  const std::string path = internal::str(::testing::TempDir(), "pieces_test_", ::getpid());
  for (const int before : {1, 2, 3}) {
    for (const int after : {1, 2, 4}) {
      std::vector<Steps> steps(4);
      const auto run = [&](int tasks, bool restores) {
        run_all_tasks(
            tasks, 1,
            [&](const Strategy& strategy, int task) {
              Steps& own = steps[static_cast<size_t>(task)];
              own = steps[0];
              DistributedIterator iterator = make(strategy);
              const train::Checkpoint checkpoint({{"input", iterator}});
              if (restores) checkpoint.restore(path);
              read(strategy, iterator, restores ? 100 : 3, own);
              if (!restores) {
                iterator.has_next();
                checkpoint.write(path);
              }
            },
            hosting(6));
      };
      run(before, false);
      for (Steps& one : steps) one = steps[0];
      run(after, true);
      EXPECT_EQ(steps[0], undisturbed) << before << " tasks, then " << after;
    }
  }
}

TEST(Pieces, AReaderGoesOnOnOtherTasks) {
  expect_resume([](const Strategy& strategy) {
    return strategy
        .experimental_distribute_dataset(
            data::Dataset::range(40).shuffle(20, {.seed = 4}).batch(7).repeat(2))
        .iterator();
  });
}

TEST(Pieces, SoDoPipelinesOfReplicas) {
  expect_resume([](const Strategy& strategy) {
    return strategy
        .distribute_datasets_from_function([](const InputContext& context) {
          return data::Dataset::range(61)
              .shard(context.num_input_pipelines, context.input_pipeline_id)
              .shuffle(5, {.seed = 2})
              .batch(2);
        })
        .iterator();
  });
}

TEST(Pieces, APolicyByWhichTasksDivideIsRefused) {
  run_all_tasks(
      2, 1,
      [](const Strategy& strategy, int) {
        for (const auto policy : {data::AutoShardPolicy::FILE, data::AutoShardPolicy::OFF}) {
          data::Options options;
          options.experimental_distribute.auto_shard_policy = policy;
          const auto dataset = data::Dataset::range(8).batch(4).with_options(options);
          EXPECT_THAT(thrown<UnimplementedError>(
                          [&] { strategy.experimental_distribute_dataset(dataset); }),
                      HasSubstr("use AutoShardPolicy::DATA"));
        }
      },
      hosting(4));
}

}  // namespace
}  // namespace cohort::distribute
