#include "cohort/keras/callbacks/file_name.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_locale.h"

namespace cohort::internal {
namespace {

std::string named(const std::string& format, double value) {
  keras::Logs logs;
  logs.set("loss", value);
  return formatted_file_name("{loss" + format + "}", 0, std::nullopt, logs);
}

TEST(FileNameTest, FormatsAreThoseOfPrintf) {
  for (const char* format : {".2f", "09.3f", "9.3f", "012.3e", ".0e", "g", ".3g", "08g", "20.10g",
                             "e", "f", "00f", "2f"}) {
    for (const double value : {0.0, -0.0, 1.5, -2.25, 1234567.125, 1e-7, -1e30, 0.1,
                               static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
      const ClassicLocale classic;  // for printf
      char text[400];
      std::snprintf(text, sizeof text, (std::string("%") + format).c_str(), value);
      EXPECT_EQ(named(std::string(":") + format, value), text) << format;
    }
  }
  EXPECT_EQ(named("", 0.25), "0.25");
  EXPECT_EQ(named("", 0.1), "0.10000000000000001");
  EXPECT_EQ(named(":.3", 0.12345), "0.123");
  EXPECT_EQ(named(":5d", 7.9), "    7");
  EXPECT_EQ(named(":05d", -7), "-0007");
}

TEST(FileNameTest, AnotherFormatIsRefused) {
  for (const char* format :
       {":x", ":2.f", ":.f", ":123d", ":.123f", ":+2d", ":-2d", ":2dd", ": 2"}) {
    EXPECT_THROW(named(format, 1), InvalidArgumentError) << format;
  }
}

TEST(FileNameTest, IsTheSameInEveryLocale) {
  for_each_locale([] {
    EXPECT_EQ(formatted_file_name("e{epoch:06d}-{epoch}-{batch}", 1233, 9999, {}),
              "e001234-1234-10000");
    EXPECT_EQ(named(":.2f", 1234.5), "1234.50");
    EXPECT_EQ(named(":.1e", 1234.5), "1.2e+03");
  });
}

}  // namespace
}  // namespace cohort::internal
