#include "cohort/core/host/preemption_watch.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

struct Process {
  CoreContention contention;
  int64_t preemptions = 1000;
  int counts = 0;
  PreemptionWatch watch{contention, [this] {
                          ++counts;
                          return preemptions;
                        }};
  CoreContention::Time now{std::chrono::hours(1)};

  bool is_contended_after(milliseconds passed, int more) {
    preemptions += more;
    watch.look(now += passed);
    return contention.is_contended(now);
  }
};

TEST(PreemptionWatch, NotesPreemptionsThatComeOften) {
  Process process;
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 50));  // of the time before
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 1));
  EXPECT_TRUE(process.is_contended_after(milliseconds(20), 2));
}

TEST(PreemptionWatch, LongStepsMayHaveSome) {
  Process process;
  process.watch.look(process.now);
  EXPECT_FALSE(process.is_contended_after(milliseconds(1000), 49));
  EXPECT_TRUE(process.is_contended_after(milliseconds(1000), 50));
}

TEST(PreemptionWatch, CountsSeldom) {
  Process process;
  for (int i = 0; i < 1000; ++i) process.is_contended_after(milliseconds(1), 0);
  EXPECT_EQ(process.counts, 50);
}

}  // namespace
}  // namespace cohort::internal
