// States of distributed iterators, and reading on after a missed deadline.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "cohort/data/testing_device.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using data::IteratorState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DistributedIterator, ResumesExactly) {
  const MirroredStrategy strategy = mirrored(3);
  const auto dataset = strategy.experimental_distribute_dataset(
      Dataset::range(50).shuffle(50, {.seed = 3}).batch(8).repeat(2));
  DistributedIterator it = dataset.iterator();
  for (int i = 0; i < 9; ++i) it.get_next();
  const auto state = IteratorState::parse(it.state().serialize());
  DistributedIterator resumed = dataset.iterator();
  resumed.restore(state);
  for (int i = 9; i < 14; ++i) EXPECT_EQ(text(resumed.get_next()), text(it.get_next()));
  EXPECT_FALSE(resumed.next());
  EXPECT_FALSE(it.next());
}

TEST(DistributedIterator, SeveralWorkersResumeExactly) {
  const Dataset source = Dataset::range(50).shuffle(7, {.seed = 3}).batch(8);
  for (const auto policy : {AutoShardPolicy::DATA, AutoShardPolicy::OFF}) {
    const MirroredStrategy strategy = mirrored(4);
    const auto dataset =
        get_distributed_dataset(with_policy(source, policy), cpu_workers(2, 2), strategy);
    const size_t steps = policy == AutoShardPolicy::OFF ? 14 : 7;
    for (size_t taken = 0; taken <= steps; ++taken) {
      DistributedIterator it = dataset.iterator();
      for (size_t i = 0; i < taken; ++i) it.get_next();
      DistributedIterator resumed = dataset.iterator();
      resumed.restore(IteratorState::parse(it.state().serialize()));
      const auto rest = all(it);
      EXPECT_EQ(rest.size(), steps - taken);
      EXPECT_EQ(all(resumed), rest);
    }
  }
}

TEST(DistributedIterator, StatesFitAnotherNumberOfReplicas) {
  const Dataset source = Dataset::range(30).shuffle(30, {.seed = 3}).batch(6);
  IteratorState state;
  std::string second;
  {
    const MirroredStrategy strategy = mirrored(2);
    DistributedIterator it = strategy.experimental_distribute_dataset(source).iterator();
    it.get_next();
    state = it.state();
    second = text(it.get_next());
  }
  const MirroredStrategy strategy = mirrored(1);
  DistributedIterator it = strategy.experimental_distribute_dataset(source).iterator();
  it.restore(state);
  std::string expected = second;
  expected.replace(expected.find("]["), 2, ",");
  EXPECT_EQ(text(it.get_next()), expected);
}

TEST(DistributedIterator, AStateOfOtherWorkersChangesNothing) {
  const MirroredStrategy strategy = mirrored(2);
  const Dataset source = Dataset::range(8).batch(4);
  const auto two = get_distributed_dataset(source, cpu_workers(2, 1), strategy);
  DistributedIterator one = strategy.experimental_distribute_dataset(source).iterator();
  one.get_next();
  EXPECT_THROW(one.restore(get_distributed_dataset(with_policy(source, AutoShardPolicy::OFF),
                                                   cpu_workers(2, 1), strategy)
                               .iterator()
                               .state()),
               InvalidArgumentError);
  EXPECT_EQ(text(one.get_next()), "[4,5][6,7]");
  const auto other =
      get_distributed_dataset(Dataset::range(9).batch(4), cpu_workers(2, 1), strategy);
  DistributedIterator it = two.iterator();
  it.get_next();
  EXPECT_THROW(it.restore(other.iterator().state()), InvalidArgumentError);
  EXPECT_EQ(text(it.get_next()), "[4,5][6,7]");
}

// It takes nothing along: no replica gets what was another's.
TEST(DistributedIterator, AMissedDeadlineLosesNoStep) {
  const MirroredStrategy strategy = mirrored(2);
  for (int64_t slow = 0; slow < 8; ++slow) {
    std::atomic<int> timeouts = 1;
    DistributedIterator it =
        strategy.experimental_distribute_dataset(data::slow_device(8, slow, &timeouts).batch(4))
            .iterator();
    std::vector<std::string> steps;
    for (int errors = 0; errors < 2 && steps.size() < 2;) {
      try {
        steps.push_back(text(it.get_next()));
        const auto first = static_cast<int64_t>(2 * (steps.size() - 1));
        EXPECT_THAT(it.positions(), ElementsAre(first, first + 1));
      } catch (const DeadlineExceededError&) {
        ++errors;
      }
    }
    EXPECT_THAT(steps, ElementsAre("[0,1][2,3]", "[4,5][6,7]")) << slow;
    EXPECT_EQ(timeouts, 0);
    EXPECT_FALSE(it.next());
  }
}

// Reads everything; after each missed deadline a fresh iterator goes on from the state.
std::vector<std::string> read_with_restarts(const DistributedDataset& dataset, int* errors) {
  DistributedIterator it = dataset.iterator();
  std::vector<std::string> steps;
  while (*errors < 10) {
    try {
      const auto batch = it.next();
      if (!batch) return steps;
      steps.push_back(text(*batch));
    } catch (const DeadlineExceededError&) {
      ++*errors;
      const std::string state = it.state().serialize();
      it = dataset.iterator();
      it.restore(IteratorState::parse(state));
    }
  }
  return steps;
}

TEST(DistributedIterator, WhatWasReadOfAStepBeforeAMissedDeadlineIsPartOfTheState) {
  const MirroredStrategy strategy = mirrored(2);
  for (int64_t slow = 0; slow < 6; ++slow) {
    std::atomic<int> timeouts = 1;
    int errors = 0;
    EXPECT_THAT(
        read_with_restarts(from_function(strategy, data::slow_device(5, slow, &timeouts).batch(1)),
                           &errors),
        ElementsAre("[0][1]", "[2][3]", "[4][]"))
        << slow;
    EXPECT_EQ(errors, 1);
  }
  for (int64_t slow = 0; slow < 4; ++slow) {
    std::atomic<int> timeouts = 2;
    int errors = 0;
    const auto dataset = get_distributed_datasets_from_function(
        [&](const InputContext& context) {
          return data::slow_device(3 - context.input_pipeline_id, slow, &timeouts).batch(1);
        },
        cpu_workers(2, 1), contexts(2), strategy);
    EXPECT_THAT(read_with_restarts(dataset, &errors), ElementsAre("[0][0]", "[1][1]", "[2][]"))
        << slow;
    EXPECT_EQ(errors, 2);
  }
}

TEST(DistributedIterator, AnErrorAndAMissedDeadlineInOneStepAreBothThrown) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<int> timeouts = 1;
  const auto dataset = from_function(strategy, data::slow_device(6, 1, &timeouts)
                                                   .map([](int64_t x) {
                                                     if (x == 0)
                                                       throw std::runtime_error("bad zero");
                                                     return x;
                                                   })
                                                   .batch(1));
  DistributedIterator first = dataset.iterator();
  EXPECT_THROW(first.next(), DeadlineExceededError);
  DistributedIterator it = dataset.iterator();
  it.restore(first.state());
  EXPECT_THROW(
      try { it.next(); } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("bad zero"));
        throw;
      },
      std::exception);
  EXPECT_EQ(text(it.get_next()), "[2][3]");
}

TEST(DistributedIterator, AStateWithinAStepIsThatBeforeIt) {
  std::atomic<int> timeouts = 1;
  const Dataset source = data::slow_device(9, 3, &timeouts).batch(1);
  IteratorState state;
  {
    const MirroredStrategy four = mirrored(4);
    DistributedIterator it = from_function(four, source).iterator();
    EXPECT_THROW(it.next(), DeadlineExceededError);
    state = it.state();
  }
  data::DatasetIterator plain = source.iterator();
  plain.next();
  plain.restore(state);
  EXPECT_EQ(plain.get_next().tensor().item<int64_t>(), 0);
  const MirroredStrategy two = mirrored(2);
  DistributedIterator other = from_function(two, source).iterator();
  other.get_next();
  other.restore(state);
  EXPECT_EQ(text(other.get_next()), "[0][1]");
}

TEST(DistributedIterator, LaterPassesOfALoopAreThoseThatWouldHaveFollowed) {
  const MirroredStrategy strategy = mirrored(4);
  const auto pass = [](const DistributedDataset& dataset) {
    std::string all;
    for (const auto& batch : dataset) all += text(batch) + ';';
    return all;
  };
  for (const int workers : {1, 2}) {
    const auto make = [&] {
      return get_distributed_dataset(
          with_policy(Dataset::range(16).shuffle(16, {.seed = 3}).batch(4), AutoShardPolicy::DATA),
          cpu_workers(workers, 4 / workers), strategy);
    };
    const DistributedDataset saved = make();
    pass(saved);
    pass(saved);
    DistributedIterator third = saved.iterator();
    third.next();
    const IteratorState state = third.state();
    const DistributedDataset resumed = make();
    DistributedIterator again = resumed.iterator();
    again.restore(state);
    EXPECT_EQ(text(again.get_next()), text(third.get_next()));
    const std::string fourth = pass(saved);
    EXPECT_EQ(pass(resumed), fourth);
    EXPECT_NE(pass(resumed), fourth);
  }
}

}  // namespace
}  // namespace cohort::distribute
