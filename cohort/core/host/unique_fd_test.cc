#include "cohort/core/host/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_fork.h"

namespace cohort::internal {
namespace {

TEST(UniqueFdTest, OwnsNoneOfTheStandardDescriptors) {
  // Each in a process of its own, which closes what the tests print to.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const std::string problem = in_forked_child([standard]() -> std::string {
      ::close(standard);
      const int lowest = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
      if (lowest != standard) return "another number";
      const UniqueFd fd(lowest);
      if (fd.get() <= STDERR_FILENO) return "it owns a standard descriptor";
      if (::fcntl(standard, F_GETFD) != -1) return "the standard descriptor is open";
      if ((::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) == 0) return "children would inherit it";
      char byte = 1;
      return ::read(fd.get(), &byte, 1) == 1 && byte == 0 ? "" : "it is another file";
    });
    EXPECT_EQ(problem, "") << standard;
  }
}

}  // namespace
}  // namespace cohort::internal
