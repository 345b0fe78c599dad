#include "cohort/core/host/host_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostIdentity, IsOfKernelNetworkAndUser) {
  EXPECT_EQ(host_identity(), host_identity());
  EXPECT_THAT(host_identity(), AllOf(HasSubstr("net:["), HasSubstr(" user ")));
}

}  // namespace
}  // namespace cohort::internal
