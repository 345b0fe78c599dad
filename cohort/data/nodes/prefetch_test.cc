#include "cohort/data/nodes/prefetch.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "cohort/core/testing_errors.h"
#include "cohort/core/threads/testing_threads.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using testing::ElementsAre;

TEST(Prefetch, KeepsElementsAndOrder) {
  EXPECT_THAT(ints(Dataset::range(5).prefetch(1)), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(ints(Dataset::range(3).prefetch(10).repeat(2)), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ints(Dataset::range(5).prefetch(2).prefetch(2).skip(3)), ElementsAre(3, 4));
  auto iterator = Dataset::range(1).prefetch(2).iterator();
  EXPECT_TRUE(iterator.next().has_value());
  EXPECT_FALSE(iterator.next().has_value());
  EXPECT_FALSE(iterator.next().has_value());
}

TEST(Prefetch, ReadsAheadOnAThreadOfItsOwn) {
  std::promise<std::thread::id> second;
  const Dataset dataset = Dataset::range(10).map([&](int64_t x) {
    if (x == 1) second.set_value(std::this_thread::get_id());
    return x;
  });
  auto iterator = dataset.prefetch(2).iterator();
  iterator.get_next();
  EXPECT_NE(second.get_future().get(), std::this_thread::get_id());  // nobody asked for element 1
}

TEST(Prefetch, ReadsNoFurtherThanItsBuffer) {
  std::atomic<int64_t> calls = 0;
  std::promise<void> fourth;
  const Dataset dataset = Dataset::range(100).map([&](int64_t x) {
    if (++calls == 4) fourth.set_value();
    return x;
  });
  {
    auto iterator = dataset.prefetch(3).iterator();
    iterator.get_next();
    fourth.get_future().wait();  // one taken, three in the buffer
  }
  EXPECT_EQ(calls, 4);
}

// The reader takes what there is and finds none ready, again and again, until ten are kept ready.
TEST(Prefetch, AutotuneKeepsMoreReadyWhereTheReaderWaits) {
  std::atomic<int64_t> calls = 0;
  const Dataset dataset = Dataset::range(1'000'000).map([&](int64_t x) {
    ++calls;
    return x;
  });
  auto iterator = dataset.prefetch(AUTOTUNE).iterator();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int64_t taken = 0;
  while (calls - taken < 10) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), taken);
    if (++taken % 100 == 0) std::this_thread::yield();
  }
  EXPECT_THAT(dataset.prefetch(AUTOTUNE).explain(), testing::HasSubstr("buffer_size=AUTOTUNE"));
}

// Views of one number, so that they take no memory here.
TEST(Prefetch, AutotuneKeepsNoMoreReadyWhereElementsAreLarge) {
  std::atomic<int64_t> calls = 0;
  const Dataset dataset = Dataset::range(100'000).map([&](int64_t) {
    ++calls;
    return Structure(at::zeros({1}, at::kFloat).expand({64 << 20}));
  });
  auto iterator = dataset.prefetch(AUTOTUNE).iterator();
  int64_t most = 0;
  for (int64_t taken = 1; taken <= 5'000; ++taken) {
    iterator.next();
    if (taken % 100 == 0) std::this_thread::yield();
    most = std::max(most, calls - taken);
  }
  EXPECT_LE(most, 2);
}

int64_t read_ahead_of(const Dataset& source, std::atomic<int64_t>& calls, int64_t at_least) {
  auto iterator = Dataset(internal::make_read_ahead(source.node(), 2), {}).iterator();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  int64_t taken = 0, most = 0;
  while (most < at_least || taken < 100) {
    if (std::chrono::steady_clock::now() > deadline) return -1;
    most = std::max(most, calls.load() - taken);
    EXPECT_TRUE(iterator.next().has_value());
    ++taken;
  }
  return most;
}

TEST(ReadAhead, OfSmallElementsIsFourTimesAsFar) {
  std::atomic<int64_t> calls = 0;
  const Dataset dataset = Dataset::range(100'000'000).map([&](int64_t x) {
    ++calls;
    return x;
  });
  EXPECT_EQ(read_ahead_of(dataset, calls, 8), 8);
}

TEST(ReadAhead, OfLargeElementsIsNoFurtherThanItsBuffer) {
  std::atomic<int64_t> calls = 0;
  const Dataset dataset = Dataset::range(100'000'000).map([&](int64_t) {
    ++calls;
    return Structure(at::zeros({1}, at::kFloat).expand({1 << 18}));
  });
  EXPECT_EQ(read_ahead_of(dataset, calls, 2), 2);
}

TEST(Prefetch, IsDestroyedWhileFullWhileEmptyAndUnused) {
  for (int64_t taken = 0; taken < 4; ++taken) {
    auto iterator = Dataset::range(1000).repeat().prefetch(2).iterator();
    for (int64_t i = 0; i < taken; ++i) iterator.get_next();
  }
}

TEST(Prefetch, DeliversErrorsInOrderAndGoesOn) {
  const Dataset dataset = Dataset::range(6)
                              .map([](int64_t x) {
                                if (x % 2 == 1) throw NotFoundError("no such thing");
                                return x;
                              })
                              .prefetch(4);
  auto iterator = dataset.iterator();
  for (int64_t i = 0; i < 6; i += 2) {
    EXPECT_EQ(iterator.get_next().tensor().item<int64_t>(), i);
    EXPECT_EQ(thrown<NotFoundError>([&] { iterator.next(); }),
              internal::str("map: element ", i + 1, ": no such thing"));
  }
  EXPECT_FALSE(iterator.next().has_value());
}

TEST(Prefetch, WithoutAThreadIsAnErrorThatNobodyIgnores) {
  auto iterator = Dataset::range(2).prefetch(1).iterator();
  auto patient = Dataset::range(2).prefetch(1).ignore_errors().iterator();
  {
    const internal::NoMoreThreads none;
    internal::expect_error<ResourceExhaustedError>([&] { iterator.next(); },
                                                   "no thread to read ahead with");
    internal::expect_error<ResourceExhaustedError>([&] { patient.next(); },
                                                   "no thread to read ahead with");
  }
  EXPECT_TRUE(iterator.next().has_value());
  EXPECT_TRUE(patient.next().has_value());
}

TEST(Prefetch, StateIsThatOfTheReader) {
  const Dataset dataset = Dataset::range(10).prefetch(4);
  auto iterator = dataset.iterator();
  EXPECT_THAT(ints(Dataset::range(10)), ints(iterator));
  iterator = dataset.iterator();
  for (int64_t position = 0; position <= 10; ++position) {
    const IteratorState state = iterator.state();
    auto restored = dataset.iterator();
    restored.restore(state);
    EXPECT_EQ(ints(restored), ints(Dataset::range(position, 10))) << position;
    iterator.next();
  }
}

TEST(Prefetch, AtTheEndOfAPipelineItMayBeLargerOrMissing) {
  auto iterator = Dataset::range(10).batch(2).prefetch(2).iterator();
  iterator.next();
  for (const Dataset& other : {Dataset::range(10).batch(2), Dataset::range(10).batch(2).prefetch(7),
                               Dataset::range(10).batch(2).prefetch(1).prefetch(1)}) {
    auto restored = other.iterator();
    restored.restore(iterator.state());
    EXPECT_EQ(restored.get_next().tensor()[0].item<int64_t>(), 2);
  }
}

TEST(Prefetch, RestoresInPlace) {
  auto iterator = Dataset::range(10).prefetch(4).iterator();
  const IteratorState start = iterator.state();
  for (int64_t i = 0; i < 5; ++i) iterator.get_next();
  iterator.restore(start);
  EXPECT_EQ(ints(iterator).size(), 10u);
}

}  // namespace
}  // namespace cohort::data
