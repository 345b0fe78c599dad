#include "tools/printable.h"

#include <gtest/gtest.h>

namespace cohort::tools {
namespace {

TEST(Printable, LeavesTextAlone) {
  EXPECT_EQ(printable("model/layer-0 \\ 'é' 漢字 🙂"), "model/layer-0 \\ 'é' 漢字 🙂");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[31m\r\n\t\x7f"), "\\x1b[31m\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\u009b"), "\\xc2\\x9b") << "an escape sequence's begin in one character";
  EXPECT_EQ(printable("\u202e"), "\\xe2\\x80\\xae") << "turns the direction of text around";
  EXPECT_EQ(printable("\u2028\u2066\u061c"), "\\xe2\\x80\\xa8\\xe2\\x81\\xa6\\xd8\\x9c");
}

TEST(Printable, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(printable("a\xff"), "a\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(printable("\xc3("), "\\xc3(");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "longer than need be";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef... (7 bytes)");
}

TEST(Printable, Counts) {
  EXPECT_EQ(counted(1, "byte"), "1 byte");
  EXPECT_EQ(counted(0, "byte"), "0 bytes");
}

}  // namespace
}  // namespace cohort::tools
