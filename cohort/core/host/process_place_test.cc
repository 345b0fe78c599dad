#include "cohort/core/host/process_place.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cohort::internal {
namespace {

// "... process 4242 123456" with another pid.
std::string with_pid(const std::string& place, pid_t pid) {
  const std::string mark = " process ";
  const size_t at = place.find(mark) + mark.size();
  return place.substr(0, at) + std::to_string(pid) + place.substr(place.find(' ', at));
}

TEST(ProcessPlace, OfAProcessThatRuns) {
  ASSERT_NE(process_place(), "");
  EXPECT_EQ(process_place(), process_place());
  EXPECT_FALSE(has_ended(process_place()));
}

TEST(ProcessPlace, NobodyKnowsOfOtherHosts) {
  EXPECT_FALSE(has_ended(""));
  EXPECT_FALSE(has_ended("another kernel net:[1] user 0 pid:[1] process 99999999 1"));
}

TEST(ProcessPlace, ANumberThatAnotherProcessHasNowIsNoLife) {
  EXPECT_TRUE(has_ended(process_place() + "1"));  // the same pid, begun at another time
  EXPECT_TRUE(has_ended(with_pid(process_place(), 99999999)));  // a pid that nobody has
}

// A killed process whose parent has not asked for its status has ended all the same.
TEST(ProcessPlace, AKilledProcessHasEnded) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string place = process_place();
    (void)!::write(ends[1], place.data(), place.size());
    ::pause();
    ::_exit(0);
  }
  char text[512];
  const ssize_t size = ::read(ends[0], text, sizeof text);
  ASSERT_GT(size, 0);
  const std::string place(text, static_cast<size_t>(size));
  EXPECT_FALSE(has_ended(place));
  ::kill(child, SIGKILL);
  siginfo_t info;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_ended(place));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(has_ended(place));
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace cohort::internal
