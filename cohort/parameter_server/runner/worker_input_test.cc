#include "cohort/parameter_server/runner/worker_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "cohort/core/testing_errors.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

using data::Dataset;
using distribute::InputContext;
using ::testing::ElementsAre;

class WorkerInputTest : public ::testing::Test {
 protected:
  WorkerInput input_over(const Dataset& dataset) {
    return WorkerInput(
        [this, dataset](const InputContext&) {
          ++made;
          return distribute::get_strategy().experimental_distribute_dataset(dataset);
        },
        {});
  }
  static int64_t first(const std::optional<WorkerInput::Batch>& batch) {
    return batch ? batch->value(0).tensor()[0].item<int64_t>() : -1;
  }
  // Of an iterator of the coordinator's.
  static std::string start_of(const Dataset& dataset, uint64_t pass) {
    return distribute::get_strategy()
        .experimental_distribute_dataset(dataset)
        .iterator_of_pass(pass)
        .state()
        .serialize();
  }
  int made = 0;
};

TEST_F(WorkerInputTest, TakesTheBatchesThatItIsGivenAndPassesOverOthers) {
  WorkerInput input = input_over(Dataset::range(20).batch(2));
  EXPECT_EQ(made, 0);
  EXPECT_EQ(first(input.take({.number = 0})), 0);
  EXPECT_EQ(first(input.take({.number = 3})), 6);
  EXPECT_EQ(first(input.take({.number = 4})), 8);
  EXPECT_EQ(first(input.take({.number = 1})), 2);  // another worker was lost with it
  EXPECT_EQ(first(input.take({.number = 9})), 18);
  EXPECT_EQ(first(input.take({.number = 10})), -1);
  EXPECT_EQ(first(input.take({.number = 25})), -1);
  EXPECT_EQ(first(input.take({.number = 2})), 4);
  EXPECT_EQ(made, 1);
}

TEST_F(WorkerInputTest, ReadsOnWhereBatchesHaveNoNumbers) {
  WorkerInput input = input_over(Dataset::range(3).batch(1));
  std::vector<int64_t> seen;
  for (int i = 0; i < 4; ++i) seen.push_back(first(input.take({})));
  EXPECT_THAT(seen, ElementsAre(0, 1, 2, -1));
  EXPECT_EQ(first(input.take({.pass = 1})), 0);
}

TEST_F(WorkerInputTest, TwoWorkersReadInTheCoordinatorsOrder) {
  // Each program has drawn seeds of its own.
  const auto dataset = [](uint64_t seed) {
    random::set_seed(seed);
    return Dataset::range(50).shuffle(50).batch(1);
  };
  for (const uint64_t pass : {0u, 3u}) {
    const std::string start = start_of(dataset(7), pass);
    WorkerInput one = input_over(dataset(8));
    WorkerInput two = input_over(dataset(9));
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 50; ++i) {
      WorkerInput& worker = i % 3 == 0 ? one : two;
      seen.insert(
          first(worker.take({.pass = static_cast<int64_t>(pass), .number = i, .start = start})));
    }
    EXPECT_EQ(seen.size(), 50u);
    EXPECT_FALSE(seen.contains(-1));
  }
}

// A coordinator that was started again has drawn other seeds, and may name a batch that this worker
// has not passed yet.
TEST_F(WorkerInputTest, AnotherOrderOfTheSamePassBeginsAnew) {
  const auto dataset = [](uint64_t seed) {
    random::set_seed(seed);
    return Dataset::range(50).shuffle(50).batch(1);
  };
  const std::string old_start = start_of(dataset(7), 0);
  const std::string new_start = start_of(dataset(8), 0);
  WorkerInput stayed = input_over(dataset(9));
  WorkerInput fresh = input_over(dataset(9));
  stayed.take({.number = 0, .start = old_start});
  for (const int64_t number : {3, 4, 20}) {
    const BatchPlace place = {.number = number, .start = new_start};
    EXPECT_EQ(first(stayed.take(place)), first(fresh.take(place)));
  }
}

TEST_F(WorkerInputTest, AnotherDatasetThanTheCoordinatorsIsRefused) {
  const std::string start = start_of(Dataset::range(50).batch(2), 0);
  WorkerInput input = input_over(Dataset::range(40).batch(2));
  EXPECT_THROW(input.take({.number = 0, .start = start}), InvalidArgumentError);
}

TEST_F(WorkerInputTest, AnErrorInReadingTakesNoOtherBatchAlong) {
  bool fails = true;
  WorkerInput input = input_over(Dataset::range(10)
                                     .map([&](const Tensor& x) {
                                       if (fails && x.item<int64_t>() == 4)
                                         throw DataLossError("bad");
                                       return x;
                                     })
                                     .batch(1));
  EXPECT_EQ(first(input.take({.number = 3})), 3);
  EXPECT_THROW(input.take({.number = 4}), DataLossError);
  fails = false;
  EXPECT_EQ(first(input.take({.number = 4})), 4);
  EXPECT_EQ(first(input.take({.number = 5})), 5);
}

}  // namespace
}  // namespace cohort::internal
