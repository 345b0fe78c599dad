// <cohort/cohort.h> is all that a user includes, and `namespace tf = cohort` all that they rename.
#include <cohort/cohort.h>
#include <gtest/gtest.h>

#include <string>

namespace tf = cohort;

namespace {

TEST(UmbrellaHeader, GivesTheGuidesNames) {
  tf::Structure element = tf::tuple(tf::Tensor(), tf::dict({{"label", 3}}));
  EXPECT_EQ(element[1]["label"].tensor().item<int64_t>(), 3);
  EXPECT_EQ(tf::canonicalize("/cpu:1"), "/job:localhost/replica:0/task:0/device:CPU:1");
  EXPECT_THROW(tf::canonicalize("/tractor:0:1:2"), tf::InvalidArgumentError);
}

TEST(UmbrellaHeader, KnowsItsVersion) {
  const std::string expected = std::to_string(COHORT_VERSION_MAJOR) + "." +
                               std::to_string(COHORT_VERSION_MINOR) + "." +
                               std::to_string(COHORT_VERSION_PATCH);
  EXPECT_EQ(tf::kVersion, expected);
}

}  // namespace
