#include <ATen/ops/arange.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "cohort/core/bytes/varint.h"
#include "cohort/data/iteration/indexed.h"
#include "cohort/data/nodes/shuffle_order.h"
#include "cohort/data/test_util.h"
#include "cohort/ops/random.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAreArray;

std::vector<int64_t> up_to(int64_t stop) {
  std::vector<int64_t> values(static_cast<size_t>(stop));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

class Shuffle : public testing::TestWithParam<int> {
 protected:
  Dataset range(int64_t stop) const {
    const Dataset dataset = Dataset::range(stop);
    if (GetParam() == 1) return in_blocks(dataset);
    if (GetParam() == 2) return sequential(dataset);
    return dataset;
  }
};
INSTANTIATE_TEST_SUITE_P(Inputs, Shuffle, testing::Values(0, 1, 2));

TEST_P(Shuffle, GivesEveryElementOnceInAnotherOrder) {
  for (int64_t buffer : {2, 7, 50, 100, 1000}) {
    const std::vector<int64_t> order = ints(range(100).shuffle(buffer, {.seed = 1}));
    EXPECT_THAT(order, UnorderedElementsAreArray(up_to(100))) << buffer;
    EXPECT_NE(order, up_to(100)) << buffer;
  }
  EXPECT_EQ(ints(range(100).shuffle(1)), up_to(100));
  EXPECT_EQ(ints(range(0).shuffle(5)), up_to(0));
}

TEST_P(Shuffle, DrawsFromTheBufferOnly) {
  const std::vector<int64_t> order = ints(range(200).shuffle(10, {.seed = 3}));
  for (int64_t i = 0; i < 200; ++i) EXPECT_LT(order[i], i + 10);
}

TEST_P(Shuffle, ASeedIsAnOrder) {
  const auto order = [&](uint64_t seed) { return ints(range(20).shuffle(8, {.seed = seed})); };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

TEST_P(Shuffle, SeedsComeFromTheGlobalOne) {
  const auto orders = [&] {
    random::set_seed(7);
    return std::pair(ints(range(20).shuffle(20)), ints(range(20).shuffle(20)));
  };
  const auto first = orders();
  EXPECT_EQ(first, orders());
  EXPECT_NE(first.first, first.second);
}

TEST_P(Shuffle, EveryPassHasItsOwnOrder) {
  for (int64_t buffer : {4, 20}) {
    const Dataset dataset = range(20).shuffle(buffer, {.seed = 1});
    const std::vector<int64_t> repeated = ints(dataset.repeat(3));
    std::vector<int64_t> passes;
    for (int i = 0; i < 3; ++i) {
      const std::vector<int64_t> pass = ints(dataset);
      EXPECT_THAT(pass, UnorderedElementsAreArray(up_to(20)));
      passes.insert(passes.end(), pass.begin(), pass.end());
    }
    EXPECT_EQ(passes, repeated);  // three iterators, and one over three repetitions
    EXPECT_FALSE(std::equal(repeated.begin(), repeated.begin() + 20, repeated.begin() + 20));
  }
}

TEST_P(Shuffle, PassesOfPassesDiffer) {
  const Dataset dataset = range(20).shuffle(20, {.seed = 1});
  const std::vector<int64_t> four = ints(dataset.repeat(4));
  EXPECT_EQ(ints(range(20).shuffle(20, {.seed = 1}).repeat(2).repeat(2)), four);
  EXPECT_EQ(ints(range(20).shuffle(20, {.seed = 1}).repeat().take(80)), four);
}

TEST_P(Shuffle, KeepsItsOrderIfTold) {
  const Dataset dataset = range(20).shuffle(6, {.seed = 1, .reshuffle_each_iteration = false});
  const std::vector<int64_t> first = ints(dataset);
  EXPECT_EQ(ints(dataset), first);
  const std::vector<int64_t> repeated = ints(dataset.repeat(2));
  EXPECT_TRUE(std::equal(repeated.begin() + 20, repeated.end(), first.begin()));
}

TEST_P(Shuffle, OrderIsTheSameInBatches) {
  for (int64_t buffer : {5, 30}) {
    const std::vector<int64_t> singles = ints(range(30).shuffle(buffer, {.seed = 4}));
    EXPECT_EQ(ints(range(30).shuffle(buffer, {.seed = 4}).batch(7)), singles);
    EXPECT_EQ(ints(range(30).shuffle(buffer, {.seed = 4}).skip(9)),
              std::vector<int64_t>(singles.begin() + 9, singles.end()));
  }
}

TEST_P(Shuffle, OrdersOfAFullBufferAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  const Dataset dataset = range(3).shuffle(3, {.seed = 5});
  constexpr int kRounds = 1200;
  for (int i = 0; i < kRounds; ++i) ++counts[ints(dataset)];
  EXPECT_EQ(counts.size(), 6u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, kRounds / 6, 70);
}

TEST_P(Shuffle, LosesNothingToAnElementThatFails) {
  const Dataset failing = range(30)
                              .map([](const Tensor& x) {
                                if (x.item<int64_t>() == 11) throw NotFoundError("no such thing");
                                return x;
                              })
                              .shuffle(8, {.seed = 1});
  auto iterator = failing.iterator();
  std::vector<int64_t> order;
  int errors = 0;
  while (true) {
    try {
      auto element = iterator.next();
      if (!element) break;
      order.push_back(element->tensor().item<int64_t>());
    } catch (const NotFoundError&) {
      ++errors;
    }
  }
  EXPECT_EQ(errors, 1);
  std::vector<int64_t> expected = up_to(30);
  expected.erase(expected.begin() + 11);
  EXPECT_THAT(order, UnorderedElementsAreArray(expected));
}

// Also where no element of the input's current stretch is in the buffer.
TEST_P(Shuffle, ResumesFromARestoredIteratorAgainAndAgain) {
  const Dataset dataset = range(300).shuffle(2, {.seed = 1});
  std::vector<int64_t> order;
  IteratorState state = dataset.iterator().state();
  for (int i = 0; i < 300; ++i) {
    auto iterator = dataset.iterator();
    iterator.restore(state);
    order.push_back(iterator.get_next().tensor().item<int64_t>());
    state = iterator.state();
  }
  EXPECT_EQ(order, ints(range(300).shuffle(2, {.seed = 1})));
}

// Elements that fail lie between those that are read again, and are no elements of the buffer.
TEST_P(Shuffle, ResumesAboveAFilterThatFails) {
  const Dataset dataset = range(1500)
                              .map([](int64_t x) {
                                if (x % 70 == 20) throw NotFoundError("none below");
                                return x;
                              })
                              .filter([](int64_t x) {
                                if (x % 50 == 7) throw NotFoundError("no such thing");
                                return x % 3 != 0;
                              })
                              .shuffle(120, {.seed = 1});
  const auto iterator = dataset.node()->make_iterator({});
  const std::vector<std::string> all = outcomes(*iterator);
  iterator->rewind(0);
  for (size_t position = 0; position < all.size(); position += 37) {
    const auto restored = dataset.node()->make_iterator({});
    restored->restore(iterator->save());
    ASSERT_EQ(outcomes(*restored), std::vector(all.begin() + position, all.end())) << position;
    ASSERT_EQ(iterator->skip(37), std::min<int64_t>(37, std::ssize(all) - position));
  }
}

TEST_P(Shuffle, SpecNeedsNoFullBuffer) {
  int calls = 0;
  const Dataset mapped = sequential(range(100)).shuffle(100).prefetch(2).map([&](const Tensor& x) {
    ++calls;
    return x;
  });
  EXPECT_EQ(mapped.element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
  EXPECT_EQ(calls, 1);
}

TEST(ShuffleOrder, IsTheSameForEver) {
  // Written down once: checkpoints of input positions depend on it.
  internal::Permutation permutation(8);
  permutation.reset(1, 0);
  const auto order = permutation.get(0, 8);
  std::vector<int64_t> sorted(order.begin(), order.end());
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, up_to(8));
  EXPECT_THAT(std::vector<int64_t>(order.begin(), order.end()),
              ElementsAre(7, 0, 5, 6, 3, 1, 4, 2));
}

TEST(ShuffleOrder, LargeOnesAreRandomPermutations) {
  const auto order = [](int64_t size, uint64_t seed, uint64_t epoch) {
    internal::Permutation permutation(size);
    permutation.reset(seed, epoch);
    const auto view = permutation.get(0, size);
    return std::vector<int64_t>(view.begin(), view.end());
  };
  for (int64_t size : {65'537, 65'792, 99'999, 100'000, 131'071}) {
    std::vector<int64_t> sorted = order(size, 1, 0);
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(sorted, up_to(size));
  }
  // Every twentieth of the places gets as much of every twentieth of the elements: 361 degrees of
  // freedom, whose chi-square exceeds 480 once in 30,000 times. So for neighbours' distances.
  constexpr int64_t kSize = 100'000, kParts = 20;
  for (uint64_t seed : {1, 2, 3}) {
    const std::vector<int64_t> all = order(kSize, seed, seed);
    for (int64_t lag : {0, 1, 316}) {
      std::vector<double> counts(kParts * kParts);
      for (int64_t i = 0; i + lag < kSize; ++i) {
        const int64_t row = (lag == 0 ? i : all[i]) * kParts / kSize;
        ++counts[row * kParts + all[i + lag] * kParts / kSize];
      }
      const double expected = static_cast<double>(kSize - lag) / (kParts * kParts);
      double chi_square = 0;
      for (const double count : counts) {
        chi_square += (count - expected) * (count - expected) / expected;
      }
      EXPECT_LT(chi_square, 480) << "seed " << seed << ", lag " << lag;
      EXPECT_GT(chi_square, 250) << "seed " << seed << ", lag " << lag;  // too even is not random
    }
  }
  EXPECT_NE(order(kSize, 1, 0), order(kSize, 1, 1));
  EXPECT_NE(order(kSize, 1, 0), order(kSize, 2, 0));
}

TEST(ShuffleOrder, LargeOnesBeginAnywhere) {
  internal::Permutation whole(100'000), part(100'000);
  whole.reset(1, 2);
  part.reset(1, 2);
  const auto all = whole.get(0, 100'000);
  const auto some = part.get(90'000, 100);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + 90'000));
}

// A buffer that is saved after many draws continues as it would have, from a bounded state.
TEST(ShuffleOrder, ABufferContinuesFarIn) {
  const int64_t capacity = 100, size = 400'000;
  internal::ShuffleBuffer buffer(capacity);
  buffer.reset(1, 2);
  const auto draw = [&](internal::ShuffleBuffer& from) {
    while (!from.full() && from.next_position() < size) from.push();
    return from.draw().position;
  };
  for (int64_t i = 0; i < 200'000; ++i) draw(buffer);
  IteratorState state;
  buffer.save(state);
  EXPECT_LT(state.serialize().size(), 1000u);
  internal::ShuffleBuffer restored(capacity);
  restored.restore(IteratorState::parse(state.serialize()), size);
  for (int64_t i = 0; i < 100'000; ++i) ASSERT_EQ(draw(restored), draw(buffer)) << i;
}

// From before the first draw until after the last, over elements of which some fail.
TEST(ShuffleOrder, ABufferWithFailuresContinuesAnywhere) {
  const int64_t capacity = 7, size = 100;
  const auto step = [](internal::ShuffleBuffer& buffer) {
    while (!buffer.full() && buffer.next_position() < size) {
      buffer.next_position() % 10 < 3 ? buffer.pass_over() : buffer.push();
    }
    return buffer.empty() ? -1 : buffer.draw().position;
  };
  internal::ShuffleBuffer buffer(capacity);
  buffer.reset(1, 2);
  for (int64_t i = 0; i <= 70; ++i) {
    IteratorState state;
    buffer.save(state);
    internal::ShuffleBuffer restored(capacity);
    restored.restore(state, size);
    ASSERT_EQ(restored.slots(), buffer.slots()) << i;
    internal::ShuffleBuffer reference = buffer;
    for (int64_t j = i; j <= 70; ++j) ASSERT_EQ(step(restored), step(reference)) << i;
    step(buffer);
  }
  EXPECT_TRUE(buffer.empty());
}

TEST(ShuffleOrder, RefusesImpossibleStates) {
  const auto restore = [](int64_t draws, int64_t next, std::string checkpoint) {
    IteratorState state;
    state.set_int("seed", 1);
    state.set_int("epoch", 0);
    state.set_bytes("checkpoint", std::move(checkpoint));
    state.set_int("draws", draws);
    state.set_int("next", next);
    state.set_bytes("failed", std::string());
    internal::ShuffleBuffer(4).restore(state, 100);
  };
  EXPECT_NO_THROW(restore(2, 6, ""));
  EXPECT_THROW(restore(2, 1, ""), DataLossError);  // drawn more than read
  EXPECT_THROW(restore(2, 7, ""), DataLossError);  // read more than fits
  EXPECT_THROW(restore(-1, 6, ""), DataLossError);
  EXPECT_THROW(restore(0, 9, std::string("\0\x09\x0a", 3)), DataLossError);  // before the start
  EXPECT_THROW(restore(0, 9, std::string("\0\x09\0", 3)), DataLossError);    // not read yet
  EXPECT_THROW(restore(0, 9, std::string("\0\x09\1\1\1\1\1", 7)), DataLossError);
  EXPECT_NO_THROW(restore(3, 100, std::string("\0\x64\1\1\1\1", 6)));
  EXPECT_THROW(restore(0, 101, std::string("\0\x65\1\1\1\1", 6)), DataLossError);  // of 100
}

// The state of a shuffle that has read `next` elements and given none, of a buffer for all that
// there could be.
IteratorState state_of_full_buffer(int64_t next) {
  IteratorState state;
  state.set_int("seed", 1);
  state.set_int("epoch", 0);
  state.set_bytes("checkpoint", std::string());
  state.set_int("draws", 0);
  state.set_int("next", next);
  state.set_bytes("failed", std::string());
  state.set_int("ended", 0);
  state.set_child("input", IteratorState());
  state.set_child("segments", IteratorState());
  return state;
}

// The first would take 8 TiB before it finds that the input has no such elements.
TEST(ShuffleOrder, TakesNoMemoryForMoreThanTheInputHas) {
  constexpr int64_t kMany = int64_t{1} << 40;
  const auto restore = [&](const Dataset& input, int64_t buffer_size) {
    const auto iterator = input.shuffle(buffer_size).node()->make_iterator({});
    iterator->restore(state_of_full_buffer(kMany));
  };
  const Dataset in_order = sequential(Dataset::range(10)).assert_cardinality(10);
  EXPECT_THAT(thrown<DataLossError>([&] { restore(in_order, 2 * kMany); }),
              HasSubstr("element 1099511627776 of 10"));
  EXPECT_THAT(thrown<DataLossError>([&] { restore(Dataset::range(2000), 1000); }),
              HasSubstr("element 1099511627776 of 2000"));
}

// Where sums of what is saved, and of what the buffer holds, exceed 64 bits.
TEST(ShuffleOrder, RefusesNumbersThatOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::string failed;
  for (int i = 0; i < 10; ++i) internal::append_varint(failed, ~uint64_t{0});
  std::string checkpoint;
  internal::append_varint(checkpoint, 0);
  internal::append_varint(checkpoint, static_cast<uint64_t>(kMost));
  internal::append_varint(checkpoint, 1);
  for (const int64_t next : {int64_t{-1}, int64_t{100}, kMost}) {
    for (const std::string& from : {std::string(), checkpoint}) {
      IteratorState state;
      state.set_int("seed", 1);
      state.set_int("epoch", 0);
      state.set_bytes("checkpoint", from);
      state.set_int("draws", kMost);
      state.set_int("next", next);
      state.set_bytes("failed", failed);
      EXPECT_THROW(internal::ShuffleBuffer(kMost).restore(state, 100), DataLossError) << next;
    }
  }
}

}  // namespace
}  // namespace cohort::data
