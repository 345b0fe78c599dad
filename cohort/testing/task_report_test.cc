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

}  // namespace
}  // namespace cohort::internal
