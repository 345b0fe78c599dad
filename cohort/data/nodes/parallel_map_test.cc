#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cohort/data/files/tfrecord_dataset.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class ParallelMap : public testing::TestWithParam<int> {
 protected:
  Dataset range(int64_t stop) const {
    if (GetParam() == 1) return in_blocks(Dataset::range(stop));
    if (GetParam() == 2) return sequential(Dataset::range(stop));
    return Dataset::range(stop);
  }
};
INSTANTIATE_TEST_SUITE_P(Inputs, ParallelMap, testing::Values(0, 1, 2));

Tensor plus_one(const Tensor& x) { return x + 1; }
Structure noisy(random::RandomGenerator& random, int64_t x) {
  return Structure(static_cast<int64_t>(random.next_u64() % 1000) * 100 + x);
}

TEST_P(ParallelMap, KeepsElementsAndOrder) {
  for (int64_t calls : {int64_t{1}, int64_t{2}, int64_t{7}, AUTOTUNE}) {
    for (const Dataset& mapped :
         {range(50).map(plus_one, {.num_parallel_calls = calls}),
          range(50).map([](int64_t x) { return x + 1; }, {.num_parallel_calls = calls}),
          range(50).map(plus_one, {.num_parallel_calls = calls, .vectorized = true})}) {
      const std::vector<int64_t> expected = ints(Dataset::range(1, 51));
      EXPECT_EQ(ints(mapped), expected);
      EXPECT_EQ(ints(mapped.batch(7)), expected);
      EXPECT_EQ(ints(mapped.skip(3).batch(4)), ints(Dataset::range(4, 51)));
      EXPECT_EQ(ints(mapped.repeat(2).batch(9)), ints(Dataset::range(1, 51).repeat(2)));
      EXPECT_THAT(ints(mapped.shuffle(60).batch(8)), UnorderedElementsAreArray(expected));
    }
  }
}

// Two calls wait for each other: one after the other they would wait for ever.
TEST_P(ParallelMap, CallsRunSideBySide) {
  std::mutex mutex;
  std::condition_variable met;
  int arrived = 0;
  const auto meet = [&](const Tensor& x) {
    std::unique_lock lock(mutex);
    ++arrived;
    met.notify_all();
    if (!met.wait_for(lock, std::chrono::seconds(60), [&] { return arrived >= 2; })) {
      throw DeadlineExceededError("the other call did not come");
    }
    return x;
  };
  EXPECT_THAT(ints(range(2).map(meet, {.num_parallel_calls = 2})), ElementsAre(0, 1));
  arrived = 0;
  EXPECT_THAT(ints(range(2).map(meet, {.num_parallel_calls = 2}).batch(2)), ElementsAre(0, 1));
}

// Maps within maps, more than there are threads: whoever waits does the work himself.
TEST_P(ParallelMap, MayReadOtherPipelines) {
  const Dataset inner = Dataset::range(5).map(plus_one, {.num_parallel_calls = 4});
  const Dataset outer = range(20).map(
      [&](const Tensor& x) {
        return x + inner.map(plus_one, {.num_parallel_calls = 4})
                       .reduce(Structure(0), [](const Tensor& a, const Tensor& b) { return a + b; })
                       .tensor();
      },
      {.num_parallel_calls = 16});
  EXPECT_EQ(ints(outer), ints(Dataset::range(20, 40)));
}

TEST_P(ParallelMap, SaysWhichElementFailedAndGoesOn) {
  const auto fail_at_3 = [](const Tensor& x) {
    if (x.item<int64_t>() == 3) throw NotFoundError("no such thing");
    return x;
  };
  for (bool deterministic : {true, false}) {
    const Dataset failing =
        range(6).map(fail_at_3, {.num_parallel_calls = 3, .deterministic = deterministic});
    auto iterator = failing.iterator();
    std::vector<int64_t> good;
    int errors = 0;
    while (true) {
      try {
        const auto element = iterator.next();
        if (!element) break;
        good.push_back(element->tensor().item<int64_t>());
      } catch (const NotFoundError& error) {
        EXPECT_STREQ(error.what(), "map: element 3: no such thing");
        ++errors;
      }
    }
    EXPECT_THAT(good, UnorderedElementsAreArray({0, 1, 2, 4, 5}));
    EXPECT_EQ(errors, 1);
  }
}

TEST_P(ParallelMap, WithoutOrderNothingIsLost) {
  const Dataset loose = range(30).map(plus_one, {.num_parallel_calls = 4, .deterministic = false});
  const std::vector<int64_t> expected = ints(Dataset::range(1, 31));
  for (int position = 0; position <= 30; ++position) {
    auto iterator = loose.iterator();
    std::vector<int64_t> all;
    for (int i = 0; i < position; ++i) {
      all.push_back(iterator.get_next().tensor().item<int64_t>());
    }
    auto restored = loose.iterator();
    restored.restore(IteratorState::parse(iterator.state().serialize()));
    const std::vector<int64_t> rest = ints(restored);
    all.insert(all.end(), rest.begin(), rest.end());
    EXPECT_THAT(all, UnorderedElementsAreArray(expected)) << position;
  }
}

// The first call on a thread of the pool ends only when a later element is there.
TEST_P(ParallelMap, WithoutOrderElementsOvertake) {
  const auto reader = std::this_thread::get_id();
  std::atomic<int64_t> slow = -1;
  std::promise<void> overtaken;
  const auto is_overtaken = overtaken.get_future().share();
  const Dataset loose = range(1'000'000).map(
      [&](const Tensor& x) {
        int64_t none = -1;
        if (std::this_thread::get_id() != reader &&
            slow.compare_exchange_strong(none, x.item<int64_t>())) {
          is_overtaken.wait_for(std::chrono::seconds(20));
        }
        return x;
      },
      {.num_parallel_calls = 4, .deterministic = false});
  auto iterator = loose.iterator();
  int64_t value = -1;
  while (slow < 0 || value < slow) {
    value = iterator.get_next().tensor().item<int64_t>();
    ASSERT_NE(value, slow);
  }
  overtaken.set_value();
  while (value != slow) value = iterator.get_next().tensor().item<int64_t>();
}

// What reads elements again, or counts them, has them in their order all the same.
TEST_P(ParallelMap, WithoutOrderWhatIsAboveLosesNothingEither) {
  const auto uneven = [](const Tensor& x) {
    for (std::atomic<int64_t> i = x.item<int64_t>() * 7919 % 5 * 4000; i > 0; --i) {
    }
    return x;
  };
  const auto same = [](const Tensor& x) { return x; };
  const MapOptions in_any_order{.num_parallel_calls = 4, .deterministic = false};
  const Dataset loose = range(30).map(uneven, in_any_order);
  for (const Dataset& dataset :
       {loose.shuffle(10, {.seed = 1}), loose.cache(), loose.batch(4).unbatch(),
        loose.batch(4).rebatch(3), loose.batch(2).rebatch({1, 4}), loose.map(same, in_any_order),
        loose.map(same, {.vectorized = true}).filter([](int64_t) { return true; }),
        loose.interleave([](int64_t x) { return Dataset::range(x, x + 1); }, {.cycle_length = 4}),
        loose.shuffle(20, {.seed = 1}).batch(4).prefetch(AUTOTUNE)}) {
    const size_t size = texts(dataset).size();
    for (size_t position = 0; position <= size; position += 3) {
      auto iterator = dataset.iterator();
      std::vector<int64_t> all;
      for (size_t i = 0; i < position; ++i) {
        const Tensor flat = iterator.get_next().tensor().contiguous();
        all.insert(all.end(), flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel());
      }
      auto restored = dataset.iterator();
      restored.restore(IteratorState::parse(iterator.state().serialize()));
      const std::vector<int64_t> rest = ints(restored);
      all.insert(all.end(), rest.begin(), rest.end());
      EXPECT_THAT(all, UnorderedElementsAreArray(ints(Dataset::range(30)))) << position << "\n"
                                                                            << dataset.explain();
    }
  }
  std::vector<int64_t> shards = ints(loose.shard(2, 0));
  for (const int64_t value : ints(loose.shard(2, 1))) shards.push_back(value);
  EXPECT_THAT(shards, UnorderedElementsAreArray(ints(Dataset::range(30))));
}

TEST_P(ParallelMap, TakesTheOrderFromTheOptions) {
  Options options;
  options.deterministic = false;
  const Dataset loose = range(30).map(plus_one, {.num_parallel_calls = 4}).with_options(options);
  EXPECT_THAT(ints(loose), UnorderedElementsAreArray(ints(Dataset::range(1, 31))));
}

TEST_P(ParallelMap, RestoringReadsAgainWhatWasUnderWay) {
  std::atomic<int64_t> calls = 0;
  const Dataset dataset = range(300).map(
      [&](const Tensor& x) {
        ++calls;
        return x;
      },
      {.num_parallel_calls = 5});
  auto iterator = dataset.iterator();
  for (int i = 0; i < 200; ++i) iterator.get_next();
  const IteratorState state = iterator.state();
  calls = 0;
  auto restored = dataset.iterator();
  restored.restore(state);
  EXPECT_LE(calls, 5);
  EXPECT_EQ(ints(restored), ints(iterator));
}

// From the middle of a block that a cache gave, which its input gives in pieces.
TEST_P(ParallelMap, ResumesWhereBlocksAreOthers) {
  const auto make = [&] {
    return range(30).cache().map(plus_one, {.num_parallel_calls = 2, .vectorized = true});
  };
  const Dataset cached = make();
  ints(cached);
  const auto iterator = cached.node()->make_iterator({});
  Structure block;
  iterator->next_block(8, block);
  ASSERT_EQ(iterator->next_block(5, block), 5);
  const auto restored = make().node()->make_iterator({});
  restored->restore(iterator->save());
  for (int64_t next = 14; next < 31;) {
    const int64_t count = restored->next_block(4, block);
    ASSERT_GT(count, 0);
    EXPECT_TRUE(at::equal(block.tensor(), at::arange(next, next + count, at::kLong)));
    next += count;
  }
  EXPECT_EQ(restored->next_block(1, block), 0);
}

TEST_P(ParallelMap, RandomNumbersAreTheElementsOwn) {
  const auto make = [&](std::optional<int64_t> calls) {
    return range(40).map(noisy, {.num_parallel_calls = calls, .seed = 5});
  };
  const std::vector<int64_t> expected = ints(make({}));
  EXPECT_EQ(ints(make(4)), expected);
  EXPECT_EQ(ints(make(AUTOTUNE).batch(7)), expected);
  EXPECT_EQ(std::set(expected.begin(), expected.end()).size(), 40u);
  EXPECT_NE(ints(range(40).map(noisy, {.seed = 6})), expected);
  // Every pass has its own.
  const Dataset dataset = make(3);
  const std::vector<int64_t> passes = ints(make(3).repeat(2));
  EXPECT_EQ(ints(dataset), std::vector(passes.begin(), passes.begin() + 40));
  EXPECT_EQ(ints(dataset), std::vector(passes.begin() + 40, passes.end()));
  EXPECT_NE(ints(dataset), expected);
}

TEST_P(ParallelMap, RandomNumbersDifferBetweenWorkers) {
  const Dataset dataset = range(40).map(noisy, {.seed = 5});
  DatasetIterator first(dataset.node(), {}), second(dataset.node(), {.worker = 1});
  const std::vector<int64_t> expected = ints(first);
  EXPECT_NE(ints(second), expected);
}

// Without a seed of its own a map has another one in every process; a state carries it.
TEST_P(ParallelMap, RandomNumbersResume) {
  for (std::optional<int64_t> calls : {std::optional<int64_t>(), std::optional<int64_t>(4)}) {
    const auto make = [&] { return range(20).map(noisy, {.num_parallel_calls = calls}).repeat(3); };
    for (int position : {0, 7, 20, 33}) {
      auto iterator = make().iterator();
      for (int i = 0; i < position; ++i) iterator.get_next();
      auto restored = make().iterator();
      restored.restore(IteratorState::parse(iterator.state().serialize()));
      EXPECT_EQ(ints(restored), ints(iterator));
    }
  }
}

TEST_P(ParallelMap, SeedsComeFromTheGlobalOne) {
  const auto numbers = [&] {
    random::set_seed(7);
    return ints(range(5).map(noisy));
  };
  EXPECT_EQ(numbers(), numbers());
}

TEST_P(ParallelMap, ChecksItsOptions) {
  EXPECT_THROW(range(3).map(plus_one, {.num_parallel_calls = 0}), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                range(3).map([](random::RandomGenerator&, const Tensor& x) { return x; },
                             {.vectorized = true});
              }),
              HasSubstr("asks for a generator"));
  EXPECT_THAT(range(3).map(noisy, {.num_parallel_calls = AUTOTUNE, .seed = 3}).explain(),
              HasSubstr("map(random=seed 3, num_parallel_calls=AUTOTUNE)"));
}

// It says of one block that was read how many rows it had.
TEST(ParallelMap, TakesNoMemoryForABlockAsLargeAsAStateSays) {
  const auto iterator = Dataset::range(int64_t{1} << 60)
                            .map(plus_one, {.num_parallel_calls = 2, .vectorized = true})
                            .node()
                            ->make_iterator({});
  IteratorState input;
  input.set_int("position", 0);
  IteratorState state;
  state.set_int("seed", 0);
  state.set_int("epoch", 0);
  state.set_int("index", 0);
  state.set_bytes("delivered", std::string());
  state.set_int("rows", int64_t{1} << 50);
  state.set_int("row", 3);
  state.set_child("input", std::move(input));
  iterator->restore(state);
  Structure element;
  ASSERT_TRUE(iterator->next(element));
  EXPECT_EQ(element.tensor().item<int64_t>(), 4);
}

using MapOverFiles = FilesTest;

TEST_F(MapOverFiles, ErrorsNameTheFile) {
  const std::string first = write_records("first", {"0", "1"});
  const std::string second = write_records("second", {"2", "3", "4"});
  const auto parse = [](std::string_view record) {
    if (record == "3") throw NotFoundError("no such thing");
    return static_cast<int64_t>(record[0] - '0');
  };
  const std::string expected = "file '" + second + "': map: element 3: no such thing";
  for (const std::optional<int64_t> calls : {std::optional<int64_t>(), std::optional<int64_t>(2)}) {
    const Dataset dataset =
        TFRecordDataset({first, second}).map(parse, {.num_parallel_calls = calls});
    auto iterator = dataset.iterator();
    for (int i = 0; i < 3; ++i) iterator.get_next();
    EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }), expected);
    EXPECT_THAT(ints(iterator), ElementsAre(4));
    EXPECT_EQ(thrown<NotFoundError>([&] { texts(dataset.batch(2)); }), expected);
  }
}

}  // namespace
}  // namespace cohort::data
