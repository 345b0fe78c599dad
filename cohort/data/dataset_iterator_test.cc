#include "cohort/data/dataset_iterator.h"

#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(DatasetIterator, EndsInEveryWayOfReading) {
  auto iterator = Dataset::range(3).iterator();
  EXPECT_EQ(iterator.next()->tensor().item<int64_t>(), 0);
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 1);
  EXPECT_EQ(iterator.get_next_as_optional()->tensor().item<int64_t>(), 2);
  EXPECT_FALSE(iterator.next().has_value());
  EXPECT_FALSE(iterator.get_next_as_optional().has_value());
  EXPECT_THROW(iterator.get_next(), OutOfRangeError);
}

TEST(DatasetIterator, ASecondThreadIsRefusedAndTheFirstIsNotDisturbed) {
  for (const int64_t ahead : {0, 2}) {
    std::latch reading(1), refused(1);
    auto iterator = Dataset::range(3)
                        .map([&](int64_t x) {
                          if (x == 0) {
                            reading.count_down();
                            refused.wait();
                          }
                          return x;
                        })
                        .prefetch(ahead)
                        .iterator();
    std::optional<Structure> first;
    std::thread reader([&] { first = iterator.next(); });
    reading.wait();
    try {
      iterator.next();
      ADD_FAILURE() << "no error";
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("a dataset's iterator was used while it is in use already"));
    }
    EXPECT_THROW(iterator.state(), FailedPreconditionError);
    refused.count_down();
    reader.join();
    EXPECT_EQ(first->tensor().item<int64_t>(), 0);
    EXPECT_EQ(iterator.next()->tensor().item<int64_t>(), 1);
  }
}

TEST(DatasetIterator, WorksInRangeFor) {
  std::vector<int64_t> values;
  for (const Structure& element : Dataset::range(3)) {
    values.push_back(element.tensor().item<int64_t>());
  }
  auto iterator = Dataset::range(5).iterator();
  iterator.next();
  for (const Structure& element : iterator) {
    values.push_back(element.tensor().item<int64_t>());
    if (values.back() == 2) break;
  }
  EXPECT_THAT(values, ElementsAre(0, 1, 2, 1, 2));
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 3);  // nothing was read too far
  for (const Structure& element : Dataset::range(0)) ADD_FAILURE() << element;
}

TEST(DatasetIterator, PairsUnpack) {
  const Tensor x = at::arange(4, at::kLong);
  for (const auto& [a, b] : Dataset::from_tensor_slices(tuple(x, x)).batch(2)) {
    EXPECT_TRUE(a.equal(b));
  }
}

TEST(DatasetIterator, KeepsItsGraphAlive) {
  auto iterator = [] { return Dataset::range(3).map([](int64_t x) { return x; }).iterator(); }();
  auto moved = std::move(iterator);
  EXPECT_THAT(ints(moved), ElementsAre(0, 1, 2));
  EXPECT_EQ(moved.element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
}

TEST(DatasetIterator, RefusesStatesOfOtherPipelines) {
  auto iterator = Dataset::range(10).shuffle(5, {.seed = 1}).batch(2).iterator();
  iterator.get_next();
  const auto text = [&](const Dataset& other) {
    return thrown<InvalidArgumentError>([&] { other.iterator().restore(iterator.state()); });
  };
  EXPECT_THAT(text(Dataset::range(10).shuffle(5, {.seed = 1}).batch(3)),
              HasSubstr("where it has 'batch(batch_size=2)', this one has 'batch(batch_size=3)'"));
  EXPECT_THAT(text(Dataset::range(10).shuffle(5, {.seed = 2}).batch(2)), HasSubstr("seed=1"));
  EXPECT_THAT(text(Dataset::range(9).shuffle(5, {.seed = 1}).batch(2)), HasSubstr("stop=10"));
  EXPECT_THAT(text(Dataset::range(10)), HasSubstr("this one has 'range(start=0"));
}

TEST(DatasetIterator, AFailedRestoreLeavesItWhereItWas) {
  const Dataset dataset = Dataset::range(5);
  auto iterator = dataset.iterator();
  iterator.get_next();
  EXPECT_THROW(iterator.restore(IteratorState()), DataLossError);
  EXPECT_THROW(iterator.restore(dataset.batch(2).iterator().state()), InvalidArgumentError);
  IteratorState beyond;
  beyond.set_bytes("graph", iterator.state().get_bytes("graph"));
  IteratorState root;
  root.set_int("position", 6);
  beyond.set_child("root", root);
  EXPECT_THROW(iterator.restore(beyond), DataLossError);
  EXPECT_THAT(ints(iterator), ElementsAre(1, 2, 3, 4));
}

TEST(DatasetIterator, ManyThreadsReadOneDataset) {
  const Dataset dataset = Dataset::range(500)
                              .map([](const Tensor& x) { return x * 2; })
                              .shuffle(50, {.seed = 1, .reshuffle_each_iteration = false})
                              .batch(7)
                              .prefetch(2);
  const std::vector<int64_t> expected = ints(dataset);
  std::vector<std::vector<int64_t>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results) {
    threads.emplace_back([&] {
      EXPECT_EQ(dataset.element_spec(), StructureSpec(TensorSpec({{kUnknownDim}}, int64)));
      result = ints(dataset);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace cohort::data
