#include "cohort/core/error.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace cohort {
namespace {

TEST(CodeNameTest, GivesEachCodeItsCanonicalName) {
  EXPECT_EQ(code_name(Code::kOk), "OK");
  EXPECT_EQ(code_name(Code::kInvalidArgument), "INVALID_ARGUMENT");
  EXPECT_EQ(code_name(Code::kUnauthenticated), "UNAUTHENTICATED");
  EXPECT_EQ(code_name(static_cast<Code>(99)), "UNKNOWN");

  std::set<std::string_view> names;
  for (int code = 0; code <= 16; ++code) names.insert(code_name(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), 17u);
}

TEST(ErrorTest, EachClassCarriesItsCodeTextAndTask) {
  try {
    throw UnavailableError("worker 1 does not answer", "/job:worker/task:1");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::kUnavailable);
    EXPECT_STREQ(error.what(), "worker 1 does not answer");
    EXPECT_EQ(error.task(), "/job:worker/task:1");
  }
}

TEST(ErrorTest, IsOfThisTaskUnlessSaidOtherwise) { EXPECT_EQ(NotFoundError("x").task(), ""); }

TEST(ErrorTest, ClassesAreDistinctAndCaughtAsRuntimeError) {
  EXPECT_THROW(throw DataLossError("x"), DataLossError);
  EXPECT_THROW(throw DataLossError("x"), std::runtime_error);
  static_assert(!std::is_base_of_v<InvalidArgumentError, OutOfRangeError>);
  EXPECT_EQ(FailedPreconditionError("x").code(), Code::kFailedPrecondition);
  EXPECT_EQ(DeadlineExceededError("x").code(), Code::kDeadlineExceeded);
  EXPECT_EQ(AlreadyExistsError("x").code(), Code::kAlreadyExists);
}

TEST(StrTest, JoinsPrintedForms) {
  EXPECT_EQ(internal::str("layer '", std::string("conv"), "' takes rank ", 4),
            "layer 'conv' takes rank 4");
}

}  // namespace
}  // namespace cohort
