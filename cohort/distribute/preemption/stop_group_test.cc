#include "cohort/distribute/preemption/stop_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/distribute/testing_errors.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;

StopWait wait_for(std::chrono::milliseconds patience) {
  return {"the tasks cannot: ", " has not: ", StopWait::Clock::now(), patience};
}

// As a call of Coordination while the coordinating task stands still.
struct LateCall {
  int operator()() const {
    if (++calls <= late) throw DeadlineExceededError("did not answer in time");
    return 42;
  }
  int late;
  mutable int calls = 0;
};

TEST(UntilAnswered, ACallWithoutAnAnswerIsMadeAgain) {
  const LateCall call{.late = 2};
  EXPECT_EQ(until_answered(wait_for(20s), call), 42);
  EXPECT_EQ(call.calls, 3);
}

TEST(UntilAnswered, AtTheEndOfTheWaitTheCallsErrorIsIts) {
  const LateCall call{.late = 1};
  EXPECT_THAT(
      distribute::thrown<DeadlineExceededError>([&] { until_answered(wait_for(0ms), call); }),
      ::testing::HasSubstr("did not answer in time"));
  EXPECT_EQ(call.calls, 1);
}

// The coordinating task is lost, or this one's membership has ended.
TEST(UntilAnswered, OtherErrorsEndItAtOnce) {
  int calls = 0;
  EXPECT_THROW(until_answered(wait_for(20s),
                              [&] {
                                ++calls;
                                throw UnavailableError("it was lost");
                              }),
               UnavailableError);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace cohort::internal
