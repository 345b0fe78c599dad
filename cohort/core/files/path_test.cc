#include <gtest/gtest.h>

#include "cohort/core/files/file_system.h"

namespace cohort::internal {
namespace {

TEST(ParentDirectoryTest, IsWhatStandsBeforeTheLastName) {
  EXPECT_EQ(parent_directory("a/b/c"), "a/b");
  EXPECT_EQ(parent_directory("c"), ".");
  EXPECT_EQ(parent_directory("/c"), "/");
  EXPECT_EQ(parent_directory("/"), "/");
  EXPECT_EQ(parent_directory(""), ".");
}

TEST(ParentDirectoryTest, TakesAnyNumberOfSlashesForOne) {
  EXPECT_EQ(parent_directory("a/b/"), "a");
  EXPECT_EQ(parent_directory("a//b//"), "a");
  EXPECT_EQ(parent_directory("//a"), "/");
}

TEST(BaseNameTest, IsTheLastName) {
  EXPECT_EQ(base_name("a/b/c"), "c");
  EXPECT_EQ(base_name("c"), "c");
  EXPECT_EQ(base_name("/c"), "c");
  EXPECT_EQ(base_name("a/b//"), "b");
  EXPECT_EQ(base_name("/"), "");
  EXPECT_EQ(base_name(""), "");
}

TEST(JoinPathTest, PutsOneSlashBetween) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("/", "b"), "/b");
}

TEST(JoinPathTest, LeavesANameThatNeedsNoDirectory) {
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
}

}  // namespace
}  // namespace cohort::internal
