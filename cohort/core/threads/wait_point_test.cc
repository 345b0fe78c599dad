#include "cohort/core/threads/wait_point.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

// Whether that thread of this process waits in the kernel.
bool sleeps(pid_t thread) {
  std::ifstream file(str("/proc/self/task/", thread, "/stat"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = text.rfind(')');
  return name_end + 2 < text.size() && text[name_end + 2] == 'S';
}

TEST(WaitPoint, WhoeverIsNotMetWhilePollingSleeps) {
  WaitPoint point;
  std::atomic<bool> met{false};
  std::atomic<pid_t> id{0};
  std::thread waiter([&] {
    id = ::gettid();
    EXPECT_TRUE(point.wait([&] { return met.load(); }, microseconds(100), WaitPoint::kForever));
  });
  const auto give_up = WaitPoint::Clock::now() + seconds(60);
  bool slept = false;
  while (!slept && WaitPoint::Clock::now() < give_up) slept = id != 0 && sleeps(id);
  EXPECT_TRUE(slept);
  met = true;
  point.notify();
  waiter.join();
}

TEST(WaitPoint, EndsAtTheDeadline) {
  WaitPoint point;
  for (const microseconds polling : {microseconds(0), microseconds(100)}) {
    const auto deadline = WaitPoint::Clock::now() + microseconds(500);
    EXPECT_FALSE(point.wait([] { return false; }, polling, deadline));
    EXPECT_GE(WaitPoint::Clock::now(), deadline);
  }
}

}  // namespace
}  // namespace cohort::internal
