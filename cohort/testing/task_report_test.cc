#include "cohort/testing/task_report.h"

#include <gmock/gmock.h>

namespace cohort::internal {
namespace {

TEST(TaskReportTest, GoesThroughItsFormat) {
  const std::string text("a\0b\n", 4);
  const auto report = decode_report(encode({Code::kDataLoss, text}));
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->code, Code::kDataLoss);
  EXPECT_EQ(report->text, text);
}

TEST(TaskReportTest, AnIncompleteReportIsNone) {
  const std::string bytes = encode({Code::kOk, "result"});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_report(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
}

TEST(TaskReportTest, ThrowsTheClassOfEveryCode) {
  for (int code = 1; code <= static_cast<int>(Code::kUnauthenticated); ++code) {
    try {
      throw_task_error(static_cast<Code>(code), "message", "/job:worker/task:0");
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.code()), code);
      EXPECT_STREQ(error.what(), "message");
      EXPECT_EQ(error.task(), "/job:worker/task:0");
    }
  }
  EXPECT_THROW(throw_task_error(Code::kUnavailable, "", ""), UnavailableError);
  EXPECT_THROW(throw_task_error(Code::kOutOfRange, "", ""), OutOfRangeError);
}

}  // namespace
}  // namespace cohort::internal
