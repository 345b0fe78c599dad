#include "cohort/core/utc_text.h"

#include <gtest/gtest.h>

#include "cohort/core/testing_locale.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(UtcTextTest, WritesDatesOfAllYears) {
  const auto text = [](int64_t count) {
    return utc_text(std::chrono::sys_seconds(seconds(count)));
  };
  EXPECT_EQ(text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(text(951'782'399), "2000-02-28T23:59:59Z");
  EXPECT_EQ(text(951'782'400), "2000-02-29T00:00:00Z");
  EXPECT_EQ(text(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(text(253'402'300'799), "9999-12-31T23:59:59Z");
}

TEST(UtcTextTest, WritesThousandthsInEveryLocale) {
  for_each_locale([] {
    const std::chrono::sys_time<milliseconds> time(milliseconds(1'763'855'212'050));
    EXPECT_EQ(utc_text(time), "2025-11-22T23:46:52.050Z");
    EXPECT_EQ(utc_text(std::chrono::sys_time<milliseconds>(milliseconds(-1))),
              "1969-12-31T23:59:59.999Z");
  });
}

}  // namespace
}  // namespace cohort::internal
