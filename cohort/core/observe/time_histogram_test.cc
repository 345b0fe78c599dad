#include "cohort/core/observe/time_histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace cohort::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

int64_t count_of(const std::string& name) {
  for (const monitoring::Timing& timing : monitoring::timings()) {
    if (timing.name == name) return timing.count;
  }
  return 0;
}

TEST(TimeHistogram, CountsByHowLongItTook) {
  TimeHistogram histogram;
  for (const nanoseconds duration :
       {nanoseconds(0), nanoseconds(microseconds(10)), nanoseconds(10'001), nanoseconds(seconds(1)),
        nanoseconds(seconds(1001))}) {
    histogram.add(duration);
  }
  const monitoring::Timing timing = histogram.read("test");
  EXPECT_EQ(timing.name, "test");
  EXPECT_EQ(timing.count, 5);
  EXPECT_NEAR(timing.seconds, 1002.000020001, 1e-9);
  EXPECT_THAT(timing.intervals, ElementsAre(2, 1, 0, 0, 0, 1, 0, 0, 0, 1));
}

TEST(TimeHistogram, LosesNoneOfManyThreads) {
  TimeHistogram& histogram = time_histogram("time_histogram_test_threads");
  EXPECT_EQ(&time_histogram("time_histogram_test_threads"), &histogram);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) histogram.add(microseconds(20));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count_of("time_histogram_test_threads"), 4000);
  EXPECT_NEAR(histogram.read("").seconds, 0.08, 1e-9);
}

TEST(TimeHistogram, TimesAScopeThatEndsByAnError) {
  TimeHistogram& histogram = time_histogram("time_histogram_test_scope");
  EXPECT_EQ(count_of("time_histogram_test_scope"), 0);
  EXPECT_THROW(
      {
        const TimedScope timed(histogram);
        throw std::runtime_error("no");
      },
      std::runtime_error);
  EXPECT_EQ(count_of("time_histogram_test_scope"), 1);
}

TEST(TimeHistogram, TellsOnlyOfWhatWasTimedInOrderOfNames) {
  time_histogram("time_histogram_test_none");
  time_histogram("time_histogram_test_b").add(nanoseconds(1));
  time_histogram("time_histogram_test_a").add(nanoseconds(1));
  const std::vector<monitoring::Timing> all = monitoring::timings();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  EXPECT_EQ(count_of("time_histogram_test_none"), 0);
  EXPECT_EQ(count_of("time_histogram_test_a"), 1);
}

}  // namespace
}  // namespace cohort::internal
