#include "cohort/core/program/process.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort::internal {
namespace {

std::string text_of(FunctionRef<void()> call) {
  try {
    call();
  } catch (const FailedPreconditionError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HomeProcessTest, AChildKnowsThatItWasForked) {
  const HomeProcess home;
  home.check("the thing");
  const std::string in_child = in_forked_child([&] {
    const HomeProcess of_child;
    if (!of_child.is_here()) return std::string("the child does not know itself");
    return text_of([&] { home.check("the thing"); });
  });
  EXPECT_THAT(in_child, ::testing::HasSubstr("the thing was made before this process was forked"));
  EXPECT_TRUE(home.is_here());
}

TEST(HomeProcessTest, AChildDoesNotDestroyWhatItsParentsThreadsUse) {
  struct Waited {
    ~Waited() {  // that of a condition variable with a waiter does not return
      {
        const std::lock_guard lock(mutex);
        over = true;
      }
      changed.notify_all();
      thread.join();
    }
    std::mutex mutex;
    std::condition_variable changed;
    bool over = false;
    std::thread thread;
  };
  HomePtr<Waited> waited(new Waited);
  waited->thread = std::thread([&state = *waited] {
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.over; });
  });
  EXPECT_EQ(in_forked_child([&] {
              waited.reset();
              return std::string("left");
            }),
            "left");
}

TEST(HomeProcessTest, AThreadPoolRefusesTasksInAChildAndIsLeftThere) {
  std::optional<ThreadPool> pool;
  pool.emplace("test", 2);
  const std::string in_child = in_forked_child([&] {
    const std::string text = text_of([&] { pool->schedule([] {}); });
    pool.reset();
    return text;
  });
  EXPECT_THAT(in_child,
              ::testing::HasSubstr("a thread pool was made before this process was fork"));
}

}  // namespace
}  // namespace cohort::internal
