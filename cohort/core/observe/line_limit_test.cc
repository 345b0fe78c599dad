#include "cohort/core/observe/line_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

struct Lines {
  std::mutex mutex;
  std::condition_variable added;
  std::vector<std::string> lines;

  LineLimitOptions options(int most, std::chrono::milliseconds period) {
    return {.most = most, .period = period, .write = [this](const std::string& line) {
              const std::lock_guard lock(mutex);
              lines.push_back(line);
              added.notify_all();
            }};
  }
  bool wait_for(size_t count) {
    std::unique_lock lock(mutex);
    return added.wait_for(lock, 20s, [&] { return lines.size() >= count; });
  }
};

TEST(LineLimit, SaysHowManyLinesItLeftOut) {
  static Lines& log = *new Lines;  // never destroyed, as the limit that writes to it
  static auto* const limit = new LineLimit("more lines were left out", log.options(2, 500ms));
  for (int i = 0; i < 1000; ++i) limit->say(str("line ", i));
  ASSERT_TRUE(log.wait_for(3));
  EXPECT_THAT(log.lines, ElementsAre("line 0", "line 1",
                                     "998 more lines were left out within 0.5 s, the last one: "
                                     "line 999"));
  // Then a new period begins.
  limit->say("later");
  ASSERT_TRUE(log.wait_for(4));
  EXPECT_EQ(log.lines.back(), "later");
}

TEST(LineLimit, SaysAllOfFewLines) {
  static Lines& log = *new Lines;  // never destroyed, as the limit that writes to it
  static auto* const limit = new LineLimit("more lines", log.options(2, 0ms));
  for (int i = 0; i < 10; ++i) limit->say(str(i));
  EXPECT_EQ(log.lines.size(), 10u);  // each begins a period
}

}  // namespace
}  // namespace cohort::internal
