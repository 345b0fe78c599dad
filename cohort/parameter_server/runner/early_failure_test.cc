#include "cohort/parameter_server/runner/early_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(EarlyFailure, WhoCouldNotBeToldIsNotTheErrorThatTheyWereNotToldOf) {
  const auto failed = std::make_exception_ptr(InvalidArgumentError("no such loss"));
  const FailedPreconditionError same("cannot listen at a:1");
  EXPECT_THAT(untold_text("the other tasks", failed, same),
              AllOf(StartsWith("this task has failed: no such loss. It could not tell the other "),
                    HasSubstr("by its silence"), HasSubstr(": cannot listen at a:1")));
  const std::string text = untold_text("the other tasks", std::make_exception_ptr(same), same);
  EXPECT_EQ(text.find("cannot listen"), text.rfind("cannot listen"));
  EXPECT_THAT(text, HasSubstr("needs what it has failed to get"));
}

}  // namespace
}  // namespace cohort::internal
