#include "cohort/core/program/run_program.h"

#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/traceback.h"

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

TEST(RunProgramTest, AnErrorOfLibtorchIsALineAndACode) {
  CaptureStderr();
  EXPECT_EQ(run_program([] { at::ones({2}).matmul(at::ones({3})); }), 64);
  const std::string product = GetCapturedStderr();
  EXPECT_THAT(product, HasSubstr(": INVALID_ARGUMENT: inconsistent tensor size"));
  EXPECT_EQ(std::count(product.begin(), product.end(), '\n'), 1) << product;

  CaptureStderr();
  EXPECT_EQ(run_program([] { at::empty({int64_t{1} << 55}); }), 1);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr(": RESOURCE_EXHAUSTED: "));

  CaptureStderr();  // libtorch's text has a line for each backend
  EXPECT_EQ(run_program([] { at::ones({2}).to_sparse().cumsum(0); }), 64);
  const std::string missing = GetCapturedStderr();
  EXPECT_THAT(missing, HasSubstr(": UNIMPLEMENTED: Could not run 'aten::"));
  EXPECT_EQ(std::count(missing.begin(), missing.end(), '\n'), 1) << missing;
}

TEST(RunProgramTest, AnErrorOfLibtorchHasItsBacktraceOnRequest) {
  debugging::disable_traceback_filtering();
  CaptureStderr();
  EXPECT_EQ(run_program([] { at::ones({2}).matmul(at::ones({3})); }), 64);
  debugging::enable_traceback_filtering();
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("frame #0"));
}

TEST(RunProgramTest, ForeignExceptionsAndOtherCodes) {
  CaptureStderr();
  EXPECT_EQ(run_program([] { throw std::runtime_error("foreign"); }), 1);
  EXPECT_EQ(run_program([] { throw 1; }, {.failed = 9}), 9);
  EXPECT_THAT(GetCapturedStderr(), HasSubstr("UNKNOWN: foreign\n"));
}

}  // namespace
}  // namespace cohort
