// Generators that a program makes itself: under a strategy each replica has a stream of its own.
#include <ATen/ops/_unique.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "cohort/core/program/task.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using random::RandomGenerator;

// Twice 12 full integers in each replica, in the order of replicas.
std::vector<Tensor> drawn(const Strategy& strategy, const RandomGenerator& generator) {
  std::vector<Tensor> all;
  for (int time = 0; time < 2; ++time) {
    const auto result = strategy.run([&](ReplicaContext&) {
      return generator.uniform_full_int({3, 4}, int32);
    });
    for (int i = 0; i < strategy.core()->num_local_replicas(); ++i) {
      all.push_back(result.value(static_cast<size_t>(i)));
    }
  }
  return all;
}

RandomGenerator made_under(const Strategy& strategy, uint64_t seed) {
  auto scope = strategy.scope();
  return RandomGenerator::from_seed(seed);
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i], b[i])) return false;
  }
  return true;
}

TEST(RandomGeneratorOfAStrategy, GivesEachReplicaAStreamOfItsOwn) {
  const MirroredStrategy strategy = mirrored(2);
  const auto numbers = drawn(strategy, made_under(strategy, 1234));
  const Tensor all = at::cat(
      {numbers[0].flatten(), numbers[1].flatten(), numbers[2].flatten(), numbers[3].flatten()});
  EXPECT_EQ(std::get<0>(at::_unique(all)).numel(), 48);
  // The order in which the replicas come changes nothing.
  EXPECT_TRUE(same_bits(drawn(strategy, made_under(strategy, 1234)), numbers));
  EXPECT_FALSE(same_bits(drawn(strategy, made_under(strategy, 1235)), numbers));
}

TEST(RandomGeneratorOfAStrategy, AReplicasNumbersDoNotDependOnWhatOthersDraw) {
  const MirroredStrategy strategy = mirrored(2);
  const auto second = [&](int first_draws) {
    const RandomGenerator generator = made_under(strategy, 7);
    return strategy
        .run([&](ReplicaContext& context) {
          const int64_t count = context.replica_id_in_sync_group() == 0 ? first_draws : 5;
          return generator.normal({count});
        })
        .value(1);
  };
  EXPECT_TRUE(at::equal(second(5), second(100)));
}

TEST(RandomGeneratorOfAStrategy, AcrossReplicasItAdvancesAllOfThem) {
  const MirroredStrategy strategy = mirrored(2);
  const RandomGenerator generator = made_under(strategy, 1);
  const RandomGenerator other = made_under(strategy, 1);
  const auto positions = [&](const RandomGenerator& of) {
    std::vector<uint64_t> all(2);
    strategy.run([&](ReplicaContext& context) {
      all[static_cast<size_t>(context.replica_id_in_sync_group())] = of.state().position;
    });
    return all;
  };
  EXPECT_THAT(positions(generator), testing::ElementsAre(0, 0));
  auto scope = strategy.scope();
  // As a generator that knows no strategy draws.
  EXPECT_TRUE(at::equal(generator.normal({3}), [] {
    std::optional<Tensor> alone;
    std::thread([&] { alone = RandomGenerator::from_seed(1).normal({3}); }).join();
    return *alone;
  }()));
  generator.skip(4);
  EXPECT_EQ(generator.state().position, 8u);
  EXPECT_THAT(positions(generator), testing::ElementsAre(8, 8));
  // No matter whether the replicas had drawn before.
  other.skip(8);
  EXPECT_THAT(positions(other), testing::ElementsAre(8, 8));
}

TEST(RandomGeneratorOfAStrategy, SplitsUnderTheStrategy) {
  const MirroredStrategy strategy = mirrored(2);
  const auto numbers = [&] {
    random::set_seed(3);
    std::optional<Scope> scope(strategy.core());
    const auto parts = random::get_global_generator().split(2);
    scope.reset();
    auto all = drawn(strategy, parts[0]);
    for (const Tensor& more : drawn(strategy, parts[1])) all.push_back(more);
    return all;
  };
  const auto first = numbers();
  EXPECT_TRUE(same_bits(numbers(), first));
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(at::equal(first[i], first[j]));
  }
}

TEST(RandomGeneratorOfAStrategy, MadeOutsideItIsOneStreamForAll) {
  const MirroredStrategy strategy = mirrored(2);
  const RandomGenerator generator = RandomGenerator::from_seed(1);
  drawn(strategy, generator);
  EXPECT_EQ(generator.state().position, 4 * 12 * 2u);  // two words for each number
  EXPECT_EQ(generator.state().stream, 0u);
}

TEST(RandomGeneratorOfAStrategy, RestoredInAReplicaItGoesOnThere) {
  const MirroredStrategy strategy = mirrored(2);
  const RandomGenerator generator = made_under(strategy, 1);
  strategy.run([&](ReplicaContext&) {
    const auto state = generator.state();
    const Tensor first = generator.normal({5});
    generator.restore(state);
    EXPECT_TRUE(at::equal(generator.normal({5}), first));
  });
}

// As the servers of an in-process cluster, which are in no group.
TEST(RandomGeneratorOfAStrategy, TasksOfTheirOwnHaveStreamsOfTheirOwn) {
  const MirroredStrategy strategy = mirrored(2);
  const auto drawn_as = [&](int task, const RandomGenerator& generator) {
    const internal::ScopedTask as_worker(internal::Task::named("worker", task));
    auto all = drawn(strategy, generator);
    auto scope = strategy.scope();
    all.push_back(generator.uniform_full_int({3, 4}, int32));
    return all;
  };
  const RandomGenerator generator = made_under(strategy, 1234);
  std::vector<std::vector<Tensor>> of_tasks;
  for (const int task : {0, 1, 2}) of_tasks.push_back(drawn_as(task, generator));
  std::vector<Tensor> flat;
  for (const auto& of_task : of_tasks) {
    for (const Tensor& one : of_task) flat.push_back(one.flatten());
  }
  EXPECT_EQ(std::get<0>(at::_unique(at::cat(flat))).numel(), 3 * 5 * 12);
  // Whoever comes first, and whatever others draw.
  const RandomGenerator again = made_under(strategy, 1234);
  EXPECT_TRUE(same_bits(drawn_as(2, again), of_tasks[2]));
  EXPECT_TRUE(same_bits(drawn_as(1, again), of_tasks[1]));
  auto scope = strategy.scope();
  again.restore({.seed = 1234});
  scope.close();
  for (const size_t task : {1, 0}) {
    EXPECT_TRUE(same_bits(drawn_as(static_cast<int>(task), again), of_tasks[task])) << task;
  }
}

using RandomGeneratorCheckpoint = data::FilesTest;

TEST_F(RandomGeneratorCheckpoint, ReplicasGoOnByTheirIds) {
  for (const int saved : {1, 2, 3}) {
    for (const int here : {1, 2, 3}) {
      const std::string path = directory + "/ckpt";
      std::vector<Tensor> next;
      {
        const MirroredStrategy strategy = mirrored(saved);
        const RandomGenerator generator = made_under(strategy, 1234);
        drawn(strategy, generator);
        train::Checkpoint({{"generator", generator}}).write(path);
        next = drawn(strategy, generator);
      }
      const MirroredStrategy strategy = mirrored(here);
      const RandomGenerator generator = made_under(strategy, 99);
      train::Checkpoint({{"generator", generator}}).read(path).expect_partial();
      const auto again = drawn(strategy, generator);
      for (size_t i = 0; i < static_cast<size_t>(std::min(saved, here)); ++i) {
        EXPECT_TRUE(at::equal(again[i], next[i])) << saved << " " << here << " " << i;
      }
    }
  }
}

TEST_F(RandomGeneratorCheckpoint, TasksSaveTheStreamsOfTheirReplicas) {
  std::vector<Tensor> numbers(4);
  run_all_tasks(2, 2, [&](const Strategy& strategy, int task) {
    const RandomGenerator generator = made_under(strategy, 1234);
    const auto first = drawn(strategy, generator);
    for (size_t i = 0; i < 2; ++i) numbers[static_cast<size_t>(2 * task) + i] = first[i];
    train::Checkpoint checkpoint({{"generator", generator}});
    const std::string path = checkpoint.save(directory + "/ckpt");
    const auto next = drawn(strategy, generator);
    checkpoint.restore(path).assert_consumed();
    EXPECT_TRUE(same_bits(drawn(strategy, generator), next));
  });
  // Those of four replicas of one task.
  const MirroredStrategy strategy = mirrored(4);
  const auto all = drawn(strategy, made_under(strategy, 1234));
  EXPECT_TRUE(same_bits(numbers, {all.begin(), all.begin() + 4}));
}

}  // namespace
}  // namespace cohort::distribute
