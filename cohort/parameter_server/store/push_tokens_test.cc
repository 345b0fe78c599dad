#include "cohort/parameter_server/store/push_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(PushTokens, ARepetitionWaitsForTheFirstNoLongerThanItMay) {
  PushTokens tokens(0ms);
  EXPECT_EQ(tokens.begin(5), 0);
  EXPECT_THAT(thrown<UnavailableError>([&] { tokens.begin(5); }), HasSubstr("push 5"));
  EXPECT_EQ(tokens.begin(6), 0);  // of others nothing is waited for
  tokens.end(5);
  EXPECT_EQ(tokens.begin(5), std::nullopt);
  EXPECT_EQ(tokens.repeated(), 1);
}

TEST(PushTokens, WhatHasStoppedGoesOnAndEnds) {
  PushTokens tokens(0ms);
  EXPECT_EQ(tokens.begin(5), 0);
  tokens.stop(5, 3);
  EXPECT_EQ(tokens.begin(5), 3);
  tokens.stop(5, 4);
  EXPECT_EQ(tokens.begin(5), 4);
  tokens.end(5);
  EXPECT_EQ(tokens.begin(5), std::nullopt);
}

TEST(PushTokens, APushThatIsForgottenWhileItIsAppliedMayEnd) {
  PushTokens tokens(0ms);
  EXPECT_EQ(tokens.begin(5), 0);
  tokens.forget_all();
  tokens.end(5);
  EXPECT_EQ(tokens.begin(5), 0);  // another program's
}

}  // namespace
}  // namespace cohort::internal
