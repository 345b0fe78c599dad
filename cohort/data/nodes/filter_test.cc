#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "cohort/data/graph/node.h"
#include "cohort/data/iteration/stacking.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Filter : public testing::TestWithParam<int> {
 protected:
  Dataset range(int64_t stop) const {
    const Dataset dataset = Dataset::range(stop);
    if (GetParam() == 1) return in_blocks(dataset);
    if (GetParam() == 2) return sequential(dataset);
    return dataset;
  }
};
INSTANTIATE_TEST_SUITE_P(Inputs, Filter, testing::Values(0, 1, 2));

TEST_P(Filter, KeepsWhatIsTrue) {
  const Dataset input = range(9);
  for (const Dataset& odd :
       {input.filter([](int64_t x) { return x % 2 == 1; }),
        input.filter([](const Tensor& x) { return x.item<int64_t>() % 2 == 1; }),
        input.filter([](const Tensor& x) { return x % 2 == 1; }),
        input.filter([](const Structure& x) { return x.tensor().item<int64_t>() % 2 == 1; })}) {
    EXPECT_THAT(ints(odd), ElementsAre(1, 3, 5, 7));
    EXPECT_THAT(texts(odd.batch(3)), ElementsAre("[1, 3, 5]", "[7]"));
    EXPECT_THAT(ints(odd.repeat(2)), ElementsAre(1, 3, 5, 7, 1, 3, 5, 7));
    EXPECT_THAT(ints(odd.skip(3)), ElementsAre(7));
    EXPECT_EQ(odd.element_spec(), input.element_spec());
  }
  EXPECT_THAT(ints(input.filter([](int64_t) { return false; })), IsEmpty());
}

TEST_P(Filter, TakesMembersOneByOne) {
  EXPECT_THAT(texts(range(4).enumerate(10).filter([](int64_t i, int64_t x) { return i + x > 12; })),
              ElementsAre("(12, 2)", "(13, 3)"));
}

TEST_P(Filter, ReadsLongInputs) {
  const Dataset rare = range(3000).filter([](int64_t x) { return x % 1000 == 999; });
  EXPECT_THAT(ints(rare), ElementsAre(999, 1999, 2999));
  EXPECT_THAT(texts(rare.batch(2)), ElementsAre("[999, 1999]", "[2999]"));
}

TEST_P(Filter, SaysWhichElementFailedAndGoesOn) {
  const Dataset failing = range(8).filter([](int64_t x) {
    if (x == 1 || x == 4) throw NotFoundError("no such thing");
    return x != 2;
  });
  auto iterator = failing.iterator();
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 0);
  EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), "filter: element 1: no such thing");
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 3);
  const IteratorState before = iterator.state();
  EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), "filter: element 4: no such thing");
  const IteratorState after = iterator.state();
  EXPECT_THAT(ints(iterator), ElementsAre(5, 6, 7));
  iterator.restore(before);
  EXPECT_THROW(iterator.next(), NotFoundError);
  iterator.restore(after);
  EXPECT_THAT(ints(iterator), ElementsAre(5, 6, 7));
}

TEST_P(Filter, LosesNoElementToOneThatFailsBelow) {
  const Dataset failing = range(8)
                              .map([](int64_t x) {
                                if (x == 2 || x == 5) throw NotFoundError("no such thing");
                                return x;
                              })
                              .filter([](int64_t x) { return x != 1; });
  auto iterator = failing.iterator();
  EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 0);
  EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), "map: element 2: no such thing");
  const IteratorState state = iterator.state();
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 3);
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), 4);
    EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), "map: element 5: no such thing");
    EXPECT_THAT(ints(iterator), ElementsAre(6, 7));
    iterator.restore(state);
  }
}

// Also those that fail, in the predicate or below it, and beyond the end.
TEST_P(Filter, SkippingIsReadingWithoutLooking) {
  const Dataset dataset = range(700)
                              .map([](int64_t x) {
                                if (x % 100 == 50) throw NotFoundError("none below");
                                return x;
                              })
                              .filter([](int64_t x) {
                                if (x % 90 == 7) throw NotFoundError("no such thing");
                                return x % 3 != 0;
                              });
  const auto all = outcomes(*dataset.node()->make_iterator({}));
  ASSERT_GT(all.size(), 400u);
  for (size_t first : {0u, 1u, 40u, 200u}) {
    for (size_t count : {0u, 1u, 9u, 150u, 300u, 1000u}) {
      const auto iterator = dataset.node()->make_iterator({});
      EXPECT_EQ(iterator->skip(static_cast<int64_t>(first)), first);
      const size_t skipped = std::min(count, all.size() - first);
      ASSERT_EQ(iterator->skip(static_cast<int64_t>(count)), skipped) << first;
      EXPECT_EQ(outcomes(*iterator), std::vector(all.begin() + first + skipped, all.end()))
          << first << ", " << count;
    }
  }
}

// The blocks of a cache that is filled are longer than those that fill it.
TEST_P(Filter, PicksWhatFollowsEachGap) {
  const auto third = [](int64_t x) { return x % 3 == 1; };
  const auto twice = [](int64_t x) { return 2 * x; };
  const auto twice_tensor = [](const Tensor& x) { return 2 * x; };
  const Dataset filtered = in_blocks(range(3000)).filter(third);
  for (const Dataset& dataset :
       {filtered, filtered.map(twice), filtered.map(twice_tensor, {.vectorized = true}),
        in_blocks(range(3000)), in_blocks(range(3000)).map(twice)}) {
    const std::vector<int64_t> all = ints(dataset);
    const auto iterator = dataset.node()->make_iterator({});
    ASSERT_TRUE(iterator->has_blocks());
    size_t place = 0;
    for (size_t round = 0; place + 400 < all.size(); ++round) {
      std::vector<int64_t> gaps = {0, 2, 0, 0, 1, static_cast<int64_t>(round * 37 % 300), 0, 3};
      for (std::span<const int64_t> left = gaps; !left.empty();) {
        Structure block;
        const auto count = static_cast<size_t>(iterator->pick_block(left, block));
        ASSERT_GT(count, 0) << dataset.explain();
        ASSERT_EQ(internal::num_rows(block), static_cast<int64_t>(count));
        for (size_t row = 0; row < count; ++row) {
          place += static_cast<size_t>(left[row]);
          EXPECT_EQ(internal::select_row(block, static_cast<int64_t>(row)).tensor().item<int64_t>(),
                    all[place++]);
        }
        left = left.subspan(count);
      }
    }
    Structure none;
    const std::vector<int64_t> beyond = {static_cast<int64_t>(all.size())};
    EXPECT_EQ(iterator->pick_block(beyond, none), 0);
  }
}

TEST_P(Filter, ResumesWhereBlocksAreOthers) {
  const auto make = [&] {
    return range(30).cache().filter([](int64_t x) { return x % 4 != 1; }).repeat(2);
  };
  const std::vector<int64_t> expected = ints(make());
  for (size_t position = 0; position < expected.size(); ++position) {
    auto iterator = make().iterator();
    for (size_t i = 0; i < position; ++i) iterator.get_next();
    auto restored = make().iterator();
    restored.restore(iterator.state());
    EXPECT_EQ(ints(restored), std::vector(expected.begin() + position, expected.end()));
  }
}

TEST_P(Filter, NeedsABool) {
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { ints(range(3).filter([](int64_t x) { return x; })); }),
      HasSubstr("filter: element 0: the function returned"));
  EXPECT_THROW(ints(range(3).filter([](const Tensor&) { return at::arange(2, at::kLong) == 1; })),
               InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::data
