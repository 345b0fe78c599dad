#include "cohort/cluster/resolvers/slurm_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;

TEST(NodelistTest, ExpandsBracketsInOrder) {
  EXPECT_THAT(expand_nodelist("n1"), ElementsAre("n1"));
  EXPECT_THAT(expand_nodelist("n[1-2],m5,o[3-4,6,7-9]"),
              ElementsAre("n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"));
  EXPECT_THAT(expand_nodelist("n[08-10],n7"), ElementsAre("n08", "n09", "n10", "n7"));
  EXPECT_THAT(expand_nodelist("n[8-10]"), ElementsAre("n8", "n9", "n10"));
  EXPECT_THAT(expand_nodelist("n[001,2]"), ElementsAre("n001", "n2"));
  EXPECT_THAT(
      expand_nodelist("r[0-1]c[01,03]-ib.example"),
      ElementsAre("r0c01-ib.example", "r0c03-ib.example", "r1c01-ib.example", "r1c03-ib.example"));
}

TEST(NodelistTest, RefusesWhatIsNoList) {
  for (const char* list : {"",
                           ",",
                           "a,",
                           "a,,b",
                           "n[",
                           "n[]",
                           "n[1",
                           "n1]",
                           "n[1-]",
                           "n[-1]",
                           "n[3-1]",
                           "n[a-b]",
                           "n[1-2",
                           "n[1]]",
                           "n[[1]]",
                           "n 1",
                           "n/1",
                           "n\n",
                           "n[0-999999999]",
                           "n[0-999][0-999]",
                           "n[1234567890]",
                           "h\xc3\xb6st"}) {
    EXPECT_THROW(expand_nodelist(list), InvalidArgumentError) << list;
  }
}

TEST(CountsTest, ExpandsRepetitions) {
  EXPECT_THAT(expand_counts("3"), ElementsAre(3));
  EXPECT_THAT(expand_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  EXPECT_THAT(expand_counts("3(x2),2,1"), ElementsAre(3, 3, 2, 1));
}

TEST(CountsTest, RefusesWhatIsNoList) {
  for (const char* list : {"", "x", "2(x3", "2(3)", "(x3)", "2(x)", "-1", "1,", "2(x999999999)",
                           "9999999999", "2(x3)4"}) {
    EXPECT_THROW(expand_counts(list), InvalidArgumentError) << list;
  }
}

}  // namespace
}  // namespace cohort::internal
