#include "cohort/core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_locale.h"

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

TEST(CaseTest, ChangesAsciiLettersOnly) {
  EXPECT_EQ(upper("gpu_0:z\xc3\xbc"), "GPU_0:Z\xc3\xbc");
  EXPECT_EQ(lower("GPU_0:Z\xc3\x9c"), "gpu_0:z\xc3\x9c");
}

TEST(SplitWordsTest, GivesWhatStandsBetweenBlanks) {
  EXPECT_THAT(split_words(" a  bc\td\n"), ::testing::ElementsAre("a", "bc", "d"));
  EXPECT_THAT(split_words(" \n"), ::testing::IsEmpty());
}

TEST(DigitsTest, AreThoseOfPrintfInEveryLocale) {
  const double values[] = {0.0,    -0.0,   1.0,      -2.5,      1234567.891, 0.00012345,
                           9.9995, 1e-300, 1e300,    5e-324,    0.5,         1.5,
                           -1e15,  123456, INFINITY, -INFINITY, 2.0 / 3};
  for (const double value : values) {
    const ClassicLocale classic;  // for printf
    char text[400];
    std::snprintf(text, sizeof text, "%.4f %.3e %.6g %.17g", value, value, value, value);
    const std::string ours = str(fixed_digits(value, 4), ' ', scientific_digits(value, 3), ' ',
                                 general_digits(value, 6), ' ', general_digits(value, 17));
    EXPECT_EQ(ours, text);
  }
  EXPECT_EQ(fixed_digits(std::nan(""), 2), "nan");
  EXPECT_EQ(with_zeros(7, 5) + with_zeros(-7, 3) + with_zeros(123456, 5), "00007-07123456");
  EXPECT_EQ(hex_digits(0xbeef, 8) + hex_digits(0, 1) + hex_digits(UINT64_MAX, 4),
            "0000beef0ffffffffffffffff");
  EXPECT_EQ(decimal_digits(INT64_MIN) + decimal_digits(UINT64_MAX) + decimal_digits(size_t{1000}),
            "-9223372036854775808184467440737095516151000");
}

TEST(LocaleTest, ChangesNeitherTextsNorWhatIsReadFromThem) {
  const std::string missing(errno_text(ENOENT));
  for_each_locale([&] {
    EXPECT_EQ(str(1'234'567, ' ', -1000.5, ' ', std::hex, 0x12345), "1234567 -1000.5 12345");
    EXPECT_EQ(fixed_digits(1234.5, 2) + general_digits(2.5, 6), "1234.502.5");
    EXPECT_EQ(scientific_digits(1234.5, 2) + decimal_digits(1'000'000), "1.23e+031000000");
    EXPECT_EQ(errno_text(ENOENT), missing);
    EXPECT_THAT(parse_number<float>("2.5"), ::testing::Optional(2.5f));
    EXPECT_THAT(parse_number<float>("2.5e-50"), ::testing::Optional(0.0f));
    EXPECT_THAT(parse_number<double>("-2.5e400"), ::testing::Optional(-INFINITY));
    EXPECT_EQ(parse_number<float>("2,5"), std::nullopt);
    EXPECT_EQ(parse_number<int32_t>("1.000"), std::nullopt);
    EXPECT_EQ(parse_number<int32_t>("1,000"), std::nullopt);
  });
}

TEST(LocaleTest, AThreadMayLeaveItForTheCLibrary) {
  const ScopedLocale german("de_DE.UTF-8");
  const auto point = [] { return std::string(::localeconv()->decimal_point); };
  EXPECT_EQ(point(), ",");
  {
    const ClassicLocale classic;
    EXPECT_EQ(point(), ".");
  }
  EXPECT_EQ(point(), ",");
}

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
  EXPECT_THAT(parse_number<float>("1e-40"), Optional(1e-40f));
  const std::string zeros(60, '0');
  const std::string far = "99999999999999999999";  // beyond int64
  for (const std::string& large :
       std::vector<std::string>{"3.5e38", "1" + zeros, "1" + zeros + ".5e-3", "0.001e+99",
                                "7E+" + far, "0." + zeros + "1e999"}) {
    EXPECT_THAT(parse_number<float>(large), Optional(std::numeric_limits<float>::infinity()));
    EXPECT_THAT(parse_number<float>("-" + large),
                Optional(-std::numeric_limits<float>::infinity()));
  }
  for (const std::string& small :
       std::vector<std::string>{"2.5e-50", "0." + zeros + "1", "0." + zeros + "1e+5", "1000e-99",
                                "7e-" + far, "1" + zeros + "e-999"}) {
    EXPECT_THAT(parse_number<float>(small), Optional(0.0f)) << small;
    const auto negative = parse_number<float>("-" + small);
    ASSERT_THAT(negative, Optional(0.0f)) << small;
    EXPECT_TRUE(std::signbit(*negative)) << small;
  }
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
