#include "cohort/core/host/polling_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <future>
#include <string>

#include "cohort/core/host/event_fd.h"

namespace cohort::internal {
namespace {

TEST(PollingThread, WaitsForItsDescriptorsUntilItIsStopped) {
  const UniqueFd asked = make_event_fd();
  const UniqueFd answered = make_event_fd();
  PollingThread thread;
  std::string name;
  bool has_returned = false;
  thread.start("for a test", "cohort-test", [&] {
    char text[16] = "";
    ::pthread_getname_np(::pthread_self(), text, sizeof text);
    name = text;
    pollfd watched[] = {thread.stop(), {asked.get(), POLLIN, 0}};
    while (thread.poll(watched)) {
      if (watched[1].revents == 0) continue;
      uint64_t count = 0;
      EXPECT_EQ(::read(asked.get(), &count, sizeof count), ssize_t{sizeof count});
      signal_event(answered.get());
    }
    has_returned = true;
  });
  signal_event(asked.get());
  pollfd answer{answered.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&answer, 1, 20'000), 1);
  thread.end();
  EXPECT_TRUE(has_returned);
  EXPECT_EQ(name, "cohort-test");
  thread.end();
}

TEST(PollingThread, ItsStopEndsAPause) {
  PollingThread thread;
  std::promise<void> paused;
  bool was_stopped = false;
  thread.start("for a test", "cohort-test", [&] {
    EXPECT_TRUE(thread.pause(std::chrono::milliseconds(1)));
    paused.set_value();
    was_stopped = !thread.pause(std::chrono::hours(1));
  });
  paused.get_future().wait();
  thread.end();
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace cohort::internal
