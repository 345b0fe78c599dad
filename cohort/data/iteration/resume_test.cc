// Any pipeline, at any place: what is restored in a new iterator of an equal dataset, from bytes,
// continues identically.
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/test_util.h"
#include "cohort/ops/philox.h"

namespace cohort::data {
namespace {

// A random pipeline of 10 to 60 or so elements. The same seed gives the same pipeline.
class RandomPipeline {
 public:
  explicit RandomPipeline(uint64_t seed) : random_(seed) {}

  Dataset make() {
    Dataset dataset = source();
    const int64_t depth = 2 + below(5);
    for (int64_t i = 0; i < depth; ++i) dataset = transform(dataset);
    return dataset.take(60);
  }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_.below(n)); }

  Dataset source() {
    const int64_t size = 1 + below(25);
    switch (below(6)) {
      case 4:
        return Dataset::from_generator([size, i = int64_t{0}]() mutable {
          return i < size ? std::optional(i++) : std::nullopt;
        });
      case 5:
        return Dataset::random(static_cast<uint64_t>(size)).take(size);
      case 0:
        return Dataset::range(size);
      case 1:
        return Dataset::from_tensor_slices(at::arange(size, at::kLong));
      case 2:
        return sequential(Dataset::range(size));
      default:
        return in_blocks(Dataset::range(size));
    }
  }
  // Elements stay int64 scalars, so that every transformation fits every other.
  Dataset transform(const Dataset& input) {
    const bool parallel = below(2) == 1;
    const std::optional<int64_t> calls = parallel ? std::optional(2 + below(3)) : std::nullopt;
    const int64_t which = below(34);
    return which < 15 ? simple(which, input) : combined(which, input, calls);
  }
  Dataset simple(int64_t which, const Dataset& input) {
    switch (which) {
      case 0:
        return input.map([](int64_t x) { return x + 1; });
      case 1:
        return input.map([](const Tensor& x) { return x + 1; });
      case 2:
        return input.map([](const Tensor& x) { return x + 1; }, {.vectorized = true});
      case 3:
        return input.filter([](int64_t x) { return x % 3 != 0; });
      case 4:
        return input.filter([](const Tensor& x) { return x.item<int64_t>() % 3 != 0; });
      case 5:
      case 6:
        return input.shuffle(1 + below(30), {.seed = static_cast<uint64_t>(below(100))});
      case 7:
        return input.shuffle(1 + below(8), {.seed = 1, .reshuffle_each_iteration = false});
      case 8:
        return input.repeat(1 + below(3));
      case 9:
        return input.repeat().take(20 + below(20));
      case 10:
        return input.skip(below(4));
      case 11:
        return input.shard(2, below(2));
      case 12:
        return input.batch(1 + below(4)).unbatch();
      case 13:
        return input.prefetch(1 + below(4));
      default:
        return input.concatenate(source());
    }
  }
  // `calls`: of those that may run in parallel.
  Dataset combined(int64_t which, const Dataset& input, const std::optional<int64_t>& calls) {
    switch (which) {
      case 15:
        return Dataset::zip({input, Dataset::range(100)}).map([](int64_t a, int64_t b) {
          return a + 100 * b;
        });
      case 16:
        return input.map([](const Tensor& x) { return x + 1; }, {.num_parallel_calls = calls});
      case 17:
        return input.map([](int64_t x) { return x + 1; }, {.num_parallel_calls = calls});
      case 18:
        return input.map(
            [](random::RandomGenerator& random, int64_t x) {
              return x + static_cast<int64_t>(random.next_u64() % 1000);
            },
            {.num_parallel_calls = calls, .seed = static_cast<uint64_t>(below(100))});
      case 19:
        return input.flat_map(
            [](int64_t x) { return Dataset::range(x % 4).shuffle(3, {.seed = 2}); });
      case 20:
        return input.interleave([](int64_t x) { return sequential(Dataset::range(x, x + 3)); },
                                {.cycle_length = 1 + below(4),
                                 .block_length = 1 + below(3),
                                 .num_parallel_calls = calls});
      case 21:
        return input.batch(3).rebatch({1 + below(4), below(3)}).unbatch();
      case 22:
        return input.padded_batch(1 + below(4)).unbatch();
      case 23:
        return input.cache();
      case 24:
        return input.take_while([](int64_t x) { return x % 17 != 16; });
      case 25:
        return input.scan(Structure(0),
                          [](int64_t sum, int64_t x) { return std::pair((sum + x) % 1000, sum); });
      case 26:
        return input.prefetch(AUTOTUNE);
      case 27:
        return Dataset::choose_from_datasets(
            {input, source()}, Dataset::range(60).map([](int64_t x) { return x % 3 / 2; }),
            {.stop_on_empty_dataset = below(2) == 1});
      case 28:
        return Dataset::sample_from_datasets({input, source()}, {.weights = {2, 1}, .seed = 3});
      case 29:
        return input.group_by_window(
            [](int64_t x) { return x % 3; },
            [](int64_t, const Dataset& window) { return window.shuffle(3, {.seed = 5}); },
            {.window_size = 1 + below(4)});
      case 30:
        return input.unique();
      case 31:
        return input.sparse_batch(1 + below(4), {}).unbatch();
      case 32:
        return Dataset::sample_from_datasets({input, source()},
                                             Dataset::range(50).map([](int64_t i) {
                                               return Tensor(at::tensor({1.0, 1.0 * (i % 3)}));
                                             }),
                                             {.seed = 3});
      default:
        return input.enumerate().map([](int64_t i, int64_t x) { return 1000 * i + x; });
    }
  }

  internal::Philox random_;
};

// Several seeds a test: starting a process takes longer than a pipeline.
constexpr uint64_t kSeedsOfATest = 8;
class Resume : public testing::TestWithParam<uint64_t> {
 protected:
  static void for_each_seed(const std::function<void(uint64_t seed)>& run) {
    for (uint64_t i = 0; i < kSeedsOfATest; ++i) {
      const uint64_t seed = GetParam() * kSeedsOfATest + i;
      SCOPED_TRACE("seed " + std::to_string(seed));
      run(seed);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Resume, testing::Range<uint64_t>(0, 10));

TEST_P(Resume, SingleElements) {
  for_each_seed(
      [](uint64_t seed) { expect_resumable([&] { return RandomPipeline(seed).make(); }); });
}

TEST_P(Resume, Batches) {
  for_each_seed([](uint64_t seed) {
    expect_resumable([&] { return RandomPipeline(seed).make().batch(3).prefetch(2); });
  });
}

TEST(Resume, AGuidesPipelineOverEpochs) {
  expect_resumable([] {
    const Tensor x = at::arange(20, at::kLong);
    return Dataset::from_tensor_slices(tuple(x, x * x))
        .shuffle(100, {.seed = 1})
        .batch(6)
        .repeat(3)
        .prefetch(2);
  });
}

// The second iterator of a dataset shuffles differently; a state says which it was.
TEST(Resume, LaterPasses) {
  const auto make = [] { return Dataset::range(12).shuffle(12, {.seed = 1}).batch(5).repeat(2); };
  const Dataset dataset = make();
  texts(dataset);
  auto second = dataset.iterator();
  second.get_next();
  auto restored = make().iterator();
  restored.restore(second.state());
  EXPECT_EQ(texts(restored), texts(second));
}

// Without a seed of its own a shuffle has another one in every process; a state carries it, also
// into the passes that follow.
TEST(Resume, ShufflesWithoutASeed) {
  for (int64_t buffer : {5, 30}) {
    for (const Dataset& input : {Dataset::range(30), sequential(Dataset::range(30))}) {
      const auto make = [&] { return input.shuffle(buffer).repeat(3); };
      auto iterator = make().iterator();
      for (int i = 0; i < 20; ++i) iterator.get_next();
      auto restored = make().iterator();
      restored.restore(iterator.state());
      EXPECT_EQ(ints(restored), ints(iterator));
    }
  }
}

// Restoring reads the elements that were in the buffer again, and no others.
TEST(Resume, ReadsOnlyWhatWasBuffered) {
  int64_t reads = 0;
  const Dataset dataset = sequential(Dataset::range(5000))
                              .map([&](const Tensor& x) {
                                ++reads;
                                return x;
                              })
                              .shuffle(40, {.seed = 1});
  auto iterator = dataset.iterator();
  for (int i = 0; i < 4000; ++i) iterator.get_next();
  const IteratorState state = iterator.state();
  EXPECT_LT(state.serialize().size(), 4000u);
  reads = 0;
  auto restored = dataset.iterator();
  restored.restore(state);
  EXPECT_LE(reads, 40);
  EXPECT_EQ(ints(restored), ints(iterator));
}

TEST(Resume, ReadsNothingWhereTheInputCanBeReadAnywhere) {
  int64_t reads = 0;
  const auto count = [&](const Tensor& x) {
    ++reads;
    return x;
  };
  for (int64_t buffer : {100, 100'000}) {
    const Dataset dataset =
        Dataset::range(100'000).map(count).shuffle(buffer, {.seed = 1}).batch(10).prefetch(2);
    auto iterator = Dataset::range(100'000).shuffle(buffer, {.seed = 1}).batch(10).iterator();
    auto counted = dataset.iterator();
    const IteratorState state = counted.state();
    EXPECT_LT(state.serialize().size(), 500u);
    auto restored = dataset.iterator();
    reads = 0;
    restored.restore(state);
    EXPECT_EQ(reads, 0);
    EXPECT_EQ(internal::str(restored.get_next()), internal::str(iterator.get_next()));
  }
}

TEST(Resume, AfterErrors) {
  const auto make = [] {
    return sequential(Dataset::range(40))
        .map([](const Tensor& x) {
          if (x.item<int64_t>() % 10 == 7) throw NotFoundError("no such thing");
          return x;
        })
        .shuffle(6, {.seed = 3})
        .batch(2);
  };
  const auto step = [](DatasetIterator& iterator) {
    try {
      const auto element = iterator.next();
      return element ? internal::str(*element) : std::string("end");
    } catch (const NotFoundError& error) {
      return std::string(error.what());
    }
  };
  const Dataset dataset = make();
  auto iterator = dataset.iterator();
  for (int position = 0; position < 22; ++position) {
    auto restored = make().iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    auto reference = make().iterator();
    reference.restore(iterator.state());
    for (int i = position; i < 25; ++i) ASSERT_EQ(step(restored), step(reference));
    auto again = make().iterator();
    again.restore(iterator.state());
    ASSERT_EQ(step(iterator), step(again)) << position;
  }
  EXPECT_EQ(step(iterator), "end");
}

TEST(Resume, LaterPassesAreThoseThatWouldHaveFollowed) {
  const auto make = [] { return Dataset::range(20).shuffle(20, {.seed = 1}); };
  const Dataset saved = make();
  ints(saved);
  ints(saved);
  auto third = saved.iterator();
  third.next();
  const IteratorState state = third.state();
  const Dataset resumed = make();
  auto again = resumed.iterator();
  again.restore(IteratorState::parse(state.serialize()));
  EXPECT_EQ(ints(again), ints(third));
  const auto fourth = ints(saved);
  EXPECT_EQ(ints(resumed), fourth);
  EXPECT_NE(ints(resumed), fourth);
}

}  // namespace
}  // namespace cohort::data
