#include "cohort/cluster/launch/elastic_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr auto kGoesOn = ElasticVerdict::kGoesOn;
constexpr auto kDone = ElasticVerdict::kDone;
constexpr auto kFailed = ElasticVerdict::kFailed;

ElasticWorker running() { return {.runs = true}; }
ElasticWorker late() { return {.runs = true, .came_late = true}; }
ElasticWorker done() { return {.status = ExitStatus{.exit_code = 0}}; }
ElasticWorker failed(int code, bool may_return, int second = 0) {
  return {.may_return = may_return,
          .status = ExitStatus{.exit_code = code},
          .ended = Clock::time_point(std::chrono::seconds(second))};
}

TEST(ElasticRulesTest, AJobGoesOnWhileEnoughAreLeft) {
  EXPECT_EQ(judge({running(), running(), failed(7, false)}, 2).next, kGoesOn);
  EXPECT_EQ(judge({running(), failed(7, true), failed(7, false)}, 2).next, kGoesOn);
  EXPECT_EQ(judge({running(), done(), failed(7, false)}, 2).next, kGoesOn);
  const ElasticVerdict verdict = judge({running(), failed(7, false), failed(8, false)}, 2);
  EXPECT_EQ(verdict.next, kFailed);
  EXPECT_THAT(verdict.reason, HasSubstr("only 1 of the 2 workers"));
  EXPECT_THAT(judge({running(), running(), failed(7, false)}, 3).reason, HasSubstr("are left"));
  EXPECT_THAT(judge({failed(7, false)}, 1).reason, HasSubstr("none of the 1 worker "));
}

TEST(ElasticRulesTest, AJobIsDoneWhenNobodyIsAtWork) {
  EXPECT_EQ(judge({done(), done(), failed(7, false)}, 2).next, kDone);
  EXPECT_EQ(judge({done(), failed(7, true)}, 2).next, kDone);
  EXPECT_EQ(judge({done(), late()}, 2).next, kDone);
  EXPECT_EQ(judge({done(), late(), running()}, 2).next, kGoesOn);
  EXPECT_EQ(judge({late(), late()}, 2).next, kGoesOn);
  EXPECT_EQ(judge({failed(7, true), failed(7, true)}, 1).next, kFailed);
}

TEST(ElasticRulesTest, TheExitCodeIsThatOfTheFirstOneThatIsLost) {
  EXPECT_EQ(judge({running(), failed(8, false, 2), failed(7, false, 1)}, 2).exit_code, 7);
  EXPECT_EQ(judge({failed(7, true, 1), failed(8, false, 3), failed(9, false, 2)}, 2).exit_code, 9);
  EXPECT_EQ(judge({failed(8, true, 2), failed(7, true, 1)}, 1).exit_code, 7);
}

TEST(ElasticRulesTest, AWrongCallWouldEndTheSameWay) {
  EXPECT_FALSE(may_come_back({.exit_code = 64}));
  EXPECT_FALSE(may_come_back({.exit_code = 0}));
  for (const int code : {1, 65, 138, 143}) EXPECT_TRUE(may_come_back({.exit_code = code})) << code;
  EXPECT_TRUE(may_come_back({.signal = 9}));
}

}  // namespace
}  // namespace cohort::internal
