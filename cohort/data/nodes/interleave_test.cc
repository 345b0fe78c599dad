#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

// x -> 10x, 10x + 1, ...: x of them.
Dataset run_of(int64_t x) { return Dataset::range(10 * x, 10 * x + x); }

TEST(FlatMap, OneAfterAnother) {
  const Dataset dataset = Dataset::range(4).flat_map(run_of);
  EXPECT_THAT(ints(dataset), ElementsAre(10, 20, 21, 30, 31, 32));
  EXPECT_EQ(dataset.cardinality(), kUnknownCardinality);
  EXPECT_EQ(dataset.element_spec(), StructureSpec(TensorSpec(std::vector<int64_t>{}, int64)));
  EXPECT_THAT(ints(Dataset::range(3).batch(2).flat_map(
                  [](const Tensor& x) { return Dataset::from_tensor_slices(x); })),
              ElementsAre(0, 1, 2));
}

TEST(Interleave, InTurn) {
  const Dataset input = Dataset::range(1, 5);
  EXPECT_THAT(ints(input.interleave(run_of, {.cycle_length = 2})),
              ElementsAre(10, 20, 21, 30, 31, 40, 32, 41, 42, 43));
  EXPECT_THAT(ints(input.interleave(run_of, {.cycle_length = 2, .block_length = 2})),
              ElementsAre(10, 20, 21, 30, 31, 32, 40, 41, 42, 43));
  EXPECT_THAT(ints(input.interleave(run_of, {.cycle_length = 20})),
              ElementsAre(10, 20, 30, 40, 21, 31, 41, 32, 42, 43));
}

TEST(Interleave, ReadingAheadKeepsTheOrder) {
  for (int64_t cycle : {1, 2, 3, 7}) {
    for (int64_t block : {1, 2, 5}) {
      const auto make = [&](std::optional<int64_t> calls) {
        return Dataset::range(6).interleave(
            run_of, {.cycle_length = cycle, .block_length = block, .num_parallel_calls = calls});
      };
      const std::vector<int64_t> expected = ints(make({}));
      EXPECT_EQ(ints(make(1)), expected);
      EXPECT_EQ(ints(make(2)), expected);
      EXPECT_EQ(ints(make(AUTOTUNE)), expected);
    }
  }
}

TEST(Interleave, WithoutOrderNothingIsLost) {
  const Dataset sure = Dataset::range(8).interleave(run_of, {.cycle_length = 3});
  const Dataset loose = Dataset::range(8).interleave(
      run_of, {.cycle_length = 3, .num_parallel_calls = AUTOTUNE, .deterministic = false});
  const std::vector<int64_t> expected = ints(sure);
  EXPECT_THAT(ints(loose), UnorderedElementsAreArray(expected));
  for (size_t position = 0; position < expected.size(); ++position) {
    auto iterator = loose.iterator();
    std::vector<int64_t> all;
    for (size_t i = 0; i < position; ++i) {
      all.push_back(iterator.get_next().tensor().item<int64_t>());
    }
    auto restored = loose.iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    const std::vector<int64_t> rest = ints(restored);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_THAT(all, UnorderedElementsAreArray(expected));
  }
}

TEST(Interleave, SaysWhichElementFailedAndGoesOn) {
  const Dataset dataset = Dataset::range(4).interleave(
      [](int64_t x) {
        if (x == 1) throw NotFoundError("no such thing");
        return Dataset::range(2).map([x](int64_t y) {
          if (x == 2 && y == 0) throw DataLossError("broken");
          return 10 * x + y;
        });
      },
      {.cycle_length = 1});
  auto iterator = dataset.iterator();
  iterator.get_next();
  iterator.get_next();
  EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }),
            "interleave: element 1: no such thing");
  EXPECT_EQ(thrown<DataLossError>([&] { iterator.next(); }),
            "interleave: in the dataset of element 2: map: element 0: broken");
  EXPECT_THAT(ints(iterator), ElementsAre(21, 30, 31));
}

TEST(Interleave, DatasetsShuffleDifferently) {
  const Dataset dataset = Dataset::range(2).flat_map(
      [](int64_t) { return Dataset::range(20).shuffle(20, {.seed = 1}); });
  const std::vector<int64_t> all = ints(dataset);
  EXPECT_FALSE(std::equal(all.begin(), all.begin() + 20, all.begin() + 20));
  EXPECT_NE(ints(dataset), all);  // and so do passes
}

TEST(Interleave, RestoringReadsTheOpenDatasetsOnly) {
  int64_t opened = 0, read = 0;
  const Dataset dataset = Dataset::range(50).interleave(
      [&](int64_t x) {
        ++opened;
        return sequential(Dataset::range(100 * x, 100 * x + 20)).map([&](const Tensor& y) {
          ++read;
          return y;
        });
      },
      {.cycle_length = 4});
  auto iterator = dataset.iterator();
  for (int i = 0; i < 600; ++i) iterator.get_next();
  const IteratorState state = iterator.state();
  auto restored = dataset.iterator();
  opened = read = 0;
  restored.restore(state);
  EXPECT_LE(opened, 4);
  EXPECT_EQ(read, 0);
  EXPECT_EQ(ints(restored), ints(iterator));
}

TEST(Interleave, ChecksItsOptions) {
  const auto make = [](InterleaveOptions options) {
    return Dataset::range(3).interleave(run_of, options);
  };
  EXPECT_THROW(make({.cycle_length = 0}), InvalidArgumentError);
  EXPECT_THROW(make({.block_length = 0}), InvalidArgumentError);
  EXPECT_THROW(make({.num_parallel_calls = 0}), InvalidArgumentError);
  EXPECT_THAT(make({.cycle_length = 2, .num_parallel_calls = AUTOTUNE}).explain(),
              HasSubstr("cycle_length=2, block_length=1, num_parallel_calls=AUTOTUNE"));
}

}  // namespace
}  // namespace cohort::data
