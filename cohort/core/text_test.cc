#include "cohort/core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace cohort::internal {
namespace {

TEST(QuotedTest, EscapesTheMarkTheBackslashAndControlCharacters) {
  EXPECT_EQ(quoted("plain"), "'plain'");
  EXPECT_EQ(quoted("it's"), "'it\\'s'");
  EXPECT_EQ(quoted("it's", '"'), "\"it's\"");
  EXPECT_EQ(quoted("a\\b"), "'a\\\\b'");
  EXPECT_EQ(quoted("line\nnext\t\x1b[2J\x7f"), "'line\\nnext\\t\\x1b[2J\\x7f'");
}

TEST(QuotedTest, KeepsBytesAboveAscii) {
  EXPECT_EQ(quoted("gr\xc3\xbc\xc3\x9f"), "'gr\xc3\xbc\xc3\x9f'");
}

TEST(QuotedTest, TakesAStringWithoutFindingTheStandardLibrarysQuoted) {
  std::string name = "x";
  const std::string text = quoted(name);
  EXPECT_EQ(text, "'x'");
}

TEST(UpperTest, ChangesAsciiLettersOnly) { EXPECT_EQ(upper("gpu_0:z\xc3\xbc"), "GPU_0:Z\xc3\xbc"); }

TEST(PathTest, ReadsAsTheUserWouldWriteIt) {
  EXPECT_EQ(key_path("image") + index_path(0), "['image'][0]");
  EXPECT_EQ(place("['image'][0]"), "['image'][0]");
  EXPECT_EQ(place(""), "top level");
}

using ::testing::Optional;

TEST(ParseNumberTest, WholeNumbersMustFit) {
  EXPECT_THAT(parse_number<int32_t>(" -12 "), Optional(-12));
  EXPECT_THAT(parse_number<int32_t>("+7"), Optional(7));
  EXPECT_THAT(parse_number<int64_t>("\t+7 "), Optional(7));
  EXPECT_THAT(parse_number<int64_t>("-9223372036854775808"),
              Optional(std::numeric_limits<int64_t>::min()));
  for (const char* text : {"", " ", "x", "1x", "1 2", "1.0", "--1", "2147483648", "0x10", "+",
                           "++1", "+-1", "+ 1", "- 1", "1+", "1\n", "inf"}) {
    EXPECT_EQ(parse_number<int32_t>(text), std::nullopt) << text;
  }
}

TEST(ParseNumberTest, FloatingOnesMayBeTooLargeOrTooSmall) {
  EXPECT_THAT(parse_number<float>("1.5e3"), Optional(1500.0f));
  EXPECT_THAT(parse_number<float>("+.5"), Optional(0.5f));
  EXPECT_THAT(parse_number<float>("1e99"), Optional(std::numeric_limits<float>::infinity()));
  EXPECT_THAT(parse_number<float>("-1e99"), Optional(-std::numeric_limits<float>::infinity()));
  EXPECT_THAT(parse_number<float>("1e-99"), Optional(0.0f));
  EXPECT_THAT(parse_number<double>("1e999"), Optional(std::numeric_limits<double>::infinity()));
  EXPECT_THAT(parse_number<double>("0.1"), Optional(0.1));
  EXPECT_THAT(parse_number<double>("+inf"), Optional(std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(*parse_number<double>("nan")));
  for (const char* text : {"", "1e", "+", "+-1", "++1", "+ 1", ".", "1.5x"}) {
    EXPECT_EQ(parse_number<float>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace cohort::internal
