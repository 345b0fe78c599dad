#include "cohort/cluster/launch/line_prefixer.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

TEST(LinePrefixerTest, MarksCompleteLinesAndKeepsTheRest) {
  LinePrefixer lines("[worker:0] ");
  EXPECT_EQ(lines.add("one\ntw"), "[worker:0] one\n");
  EXPECT_EQ(lines.add("o\n\nthree"), "[worker:0] two\n[worker:0] \n");
  EXPECT_EQ(lines.finish(), "[worker:0] three\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(LinePrefixerTest, CutsALineThatDoesNotEnd) {
  LinePrefixer lines("> ");
  const std::string out = lines.add(std::string(100'000, 'x'));
  EXPECT_EQ(out, "> " + std::string(65'536, 'x') + "\n");
  EXPECT_EQ(lines.finish(), "> " + std::string(100'000 - 65'536, 'x') + "\n");
}

TEST(LinePrefixerTest, TheLongestLineIsOneLineHoweverItComes) {
  LinePrefixer lines("> ");
  const std::string longest(65'536, 'x');
  std::string out = lines.add(longest);
  out += lines.add("\nnext\n");
  EXPECT_EQ(out, "> " + longest + "\n> next\n");
}

}  // namespace
}  // namespace cohort::internal
