#include "cohort/core/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cohort/core/error.h"

namespace cohort {
namespace {

using testing::HasSubstr;
using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

TEST(RunProgramTest, ReturnsTheProgramsCode) {
  EXPECT_EQ(run_program([] {}), 0);
  EXPECT_EQ(run_program([] { return 7; }), 7);
}

TEST(RunProgramTest, AnErrorIsALineAndACode) {
  CaptureStderr();
  EXPECT_EQ(run_program([] { throw UnavailableError("it was lost", "/job:worker/task:1"); }), 138);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(": UNAVAILABLE: it was lost [/job:worker/task:1]\n"));
}

TEST(RunProgramTest, CodesSayWhatToDoNext) {
  const auto code = [](Code error) {
    CaptureStderr();
    const int result = run_program([&] { internal::throw_error(error, "text"); });
    GetCapturedStderr();
    return result;
  };
  EXPECT_EQ(code(Code::kInvalidArgument), 64);
  EXPECT_EQ(code(Code::kFailedPrecondition), 64);
  EXPECT_EQ(code(Code::kNotFound), 64);
  EXPECT_EQ(code(Code::kDataLoss), 65);
  EXPECT_EQ(code(Code::kDeadlineExceeded), 138);
  EXPECT_EQ(code(Code::kInternal), 1);
}

TEST(RunProgramTest, ForeignExceptionsAndOtherCodes) {
  CaptureStderr();
  EXPECT_EQ(run_program([] { throw std::runtime_error("foreign"); }), 1);
  EXPECT_EQ(run_program([] { throw 1; }, {.failed = 9}), 9);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("UNKNOWN: foreign\n"));
}

}  // namespace
}  // namespace cohort
