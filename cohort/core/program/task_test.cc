#include "cohort/core/program/task.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "cohort/core/structure/device.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort {
namespace {

using internal::ScopedTask;
using internal::Task;

TEST(TaskTest, IsTheProcessesOwnWhereNobodySaysOtherwise) {
  EXPECT_EQ(Task::current().to_string(), "/job:localhost/task:0");
  EXPECT_EQ(&Task::current(), &Task::named("localhost", 0));
}

TEST(TaskTest, ScopesNest) {
  {
    const ScopedTask outer(Task::named("worker", 1));
    {
      const ScopedTask inner(Task::named("ps", 0));
      EXPECT_EQ(Task::current().to_string(), "/job:ps/task:0");
    }
    EXPECT_EQ(Task::current().to_string(), "/job:worker/task:1");
  }
  EXPECT_EQ(Task::current().to_string(), "/job:localhost/task:0");
}

TEST(TaskTest, EqualNamesAreOneObject) {
  EXPECT_EQ(&Task::named("worker", 3), &Task::named("worker", 3));
  EXPECT_NE(&Task::named("worker", 3), &Task::named("worker", 4));
  EXPECT_NE(&Task::named("worker", 3), &Task::named("ps", 3));
}

// Two tasks of one process, which use one pool.
TEST(TaskTest, ThreadsOfTwoTasksNameTheirOwnDevicesAlsoInTheWorkThatTheyHandOver) {
  ThreadPool pool("test", 1);
  const auto name_as = [&](int index) {
    const ScopedTask as_worker(Task::named("worker", index));
    std::promise<std::string> in_pool;
    pool.schedule([&] { in_pool.set_value(canonicalize("CPU:0")); });
    return canonicalize("CPU:0") + " " + in_pool.get_future().get();
  };
  std::string names[2];
  std::thread other([&] { names[1] = name_as(1); });
  names[0] = name_as(0);
  other.join();
  for (int i = 0; i < 2; ++i) {
    const std::string own = "/job:worker/replica:0/task:" + std::to_string(i) + "/device:CPU:0";
    EXPECT_EQ(names[i], own + " " + own);
  }
  std::promise<std::string> afterwards;
  pool.schedule([&] { afterwards.set_value(Task::current().to_string()); });
  EXPECT_EQ(afterwards.get_future().get(), "/job:localhost/task:0");
}

}  // namespace
}  // namespace cohort
