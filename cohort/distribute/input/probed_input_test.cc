// Distributed input where nobody says what elements look like, or in which order they come.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/get_distributed_dataset.h"
#include "cohort/distribute/strategies/ordered_results.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::AutoShardPolicy;
using data::Dataset;
using ::testing::ElementsAre;

Tensor refuse_zero(const Tensor& x) {
  if (x.item<int64_t>() == 0) throw InvalidArgumentError("zero");
  return x;
}

// Gives 1 .. `last`, each twice, from where it can be had only once.
auto queue(int64_t last, std::shared_ptr<int64_t> given = std::make_shared<int64_t>(0)) {
  return [last, given]() -> std::optional<Tensor> {
    if (*given == last) return std::nullopt;
    return at::full({2}, ++*given, at::kLong);
  };
}

DistributedDataset from_function(const MirroredStrategy& strategy, const Dataset& dataset) {
  return strategy.distribute_datasets_from_function([&](const InputContext&) { return dataset; });
}

TEST(ProbedInput, ABadFirstElementIsNoWorseThanAnother) {
  const Dataset rows = Dataset::range(6).map(refuse_zero).ignore_errors();
  EXPECT_THAT(all(mirrored(2).experimental_distribute_dataset(rows.batch(2))),
              ElementsAre("[1][2]", "[3][4]", "[5][]"));
  const MirroredStrategy four = mirrored(4);
  EXPECT_THAT(all(from_function(four, rows.batch(1))), ElementsAre("[1][2][3][4]", "[5][][][]"));
}

TEST(ProbedInput, LookingTakesNothingFromAGenerator) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(all(strategy.experimental_distribute_dataset(Dataset::from_generator(queue(3)))),
              ElementsAre("[1][1]", "[2][2]", "[3][3]"));
}

TEST(ProbedInput, WhatIsOnlyGuessedLeavesNothingOut) {
  const MirroredStrategy strategy = mirrored(4);
  const auto give = [left = int64_t{6}]() mutable -> std::optional<Tensor> {
    if (left == 0) return std::nullopt;
    return at::full({2}, left--, at::kLong);
  };
  EXPECT_THAT(all(from_function(strategy, Dataset::from_generator(give))),
              ElementsAre("[6,6][5,5][4,4][3,3]", "[2,2][1,1][][]"));
  const auto grow = [](const Tensor& x) {
    return at::full({x.item<int64_t>()}, x.item<int64_t>(), at::kLong);
  };
  EXPECT_THAT(all(from_function(strategy, Dataset::range(1, 7).map(grow))),
              ElementsAre("[1][2,2][3,3,3][4,4,4,4]", "[5,5,5,5,5][6,6,6,6,6,6][][]"));
}

// A map that lets elements overtake, below what divides them.
Dataset loose(int64_t size) {
  const auto uneven = [](const Tensor& x) {
    for (std::atomic<int64_t> i = x.item<int64_t>() * 7919 % 5 * 4000; i > 0; --i) {
    }
    return x;
  };
  return Dataset::range(size)
      .filter([](const Tensor&) { return true; })
      .map(uneven, {.num_parallel_calls = 4, .deterministic = false});
}

TEST(ProbedInput, ElementsThatOvertakeAreSharedOnceAllTheSame) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = get_distributed_dataset(
      with_policy(loose(60).batch(4), AutoShardPolicy::DATA), cpu_workers(2, 1), strategy);
  std::vector<int64_t> seen;
  for (const auto& batch : dataset) {
    for (const Structure& piece : batch.values()) {
      for (int64_t i = 0; i < piece.tensor().size(0); ++i) {
        seen.push_back(piece.tensor()[i].item<int64_t>());
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  std::vector<int64_t> expected(60);
  for (int64_t i = 0; i < 60; ++i) expected[i] = i;
  EXPECT_EQ(seen, expected);
}

TEST(ProbedInput, ResultsInOrderKeepTheOrder) {
  const Structure rows =
      run_in_order(mirrored(2), loose(40).batch(4), [](const Tensor& batch) { return batch; });
  for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(rows.tensor()[i].item<int64_t>(), i);
}

}  // namespace
}  // namespace cohort::distribute
