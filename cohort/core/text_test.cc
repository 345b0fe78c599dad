#include "cohort/core/text.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cohort::internal
