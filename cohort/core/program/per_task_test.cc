#include "cohort/core/program/per_task.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

PerTask<std::string>::Make name_of_task(int& made) {
  return [&made] {
    ++made;
    return std::make_unique<std::string>(Task::current().to_string());
  };
}

TEST(PerTask, HasOneObjectForEachTaskThatAsks) {
  int made = 0;
  const PerTask<std::string> names(name_of_task(made));
  EXPECT_EQ(made, 1);
  const std::string& own = names.get();
  EXPECT_EQ(own, "/job:localhost/task:0");
  for (int round = 0; round < 2; ++round) {
    for (int index = 0; index < 3; ++index) {
      const ScopedTask as_worker(Task::named("worker", index));
      EXPECT_EQ(names.get(), "/job:worker/task:" + std::to_string(index));
    }
  }
  EXPECT_EQ(made, 4);
  EXPECT_EQ(&names.get(), &own);
}

TEST(PerTask, ThreadsOfOneTaskGetTheSameObjectWhoeverIsFirst) {
  int made = 0;
  const PerTask<std::string> names(name_of_task(made));
  std::array<const std::string*, 8> got{};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i) {
    threads.emplace_back([&, i] {
      const ScopedTask as_worker(Task::named("worker", static_cast<int>(i % 2)));
      got[i] = &names.get();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 3);
  for (size_t i = 2; i < got.size(); ++i) EXPECT_EQ(got[i], got[i % 2]);
  EXPECT_NE(got[0], got[1]);
}

TEST(PerTask, ATaskWhoseObjectCouldNotBeMadeTriesAgain) {
  bool fails = false;
  const PerTask<int> numbers([&] {
    if (fails) throw UnavailableError("not now");
    return std::make_unique<int>(7);
  });
  const ScopedTask as_worker(Task::named("worker", 0));
  fails = true;
  EXPECT_THROW(numbers.get(), UnavailableError);
  fails = false;
  EXPECT_EQ(numbers.get(), 7);
}

}  // namespace
}  // namespace cohort::internal
