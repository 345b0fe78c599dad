#include "cohort/core/host/event_fd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

TEST(EventFd, WithoutDescriptorsIsAnErrorThatSaysWhatToDo) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = make_event_fd().get();
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::string message;
  try {
    make_event_fd();
  } catch (const ResourceExhaustedError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(message, ::testing::HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace cohort::internal
