#include "cohort/core/threads/worker_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <future>
#include <optional>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/threads/testing_threads.h"

namespace cohort::internal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Clock = WorkerThread::Clock;

std::string own_name() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return name;
}

TEST(WorkerThread, MakesOneCallAfterAnother) {
  WorkerThread worker("for a test", "worker");
  std::string names;
  for (int i = 0; i < 3; ++i) {
    worker.start([&] { names += own_name() + " "; });
    worker.wait();
  }
  EXPECT_EQ(names, "worker worker worker ");
}

TEST(WorkerThread, WaitsAtMostUntilTheDeadline) {
  std::promise<void> may_end;
  WorkerThread worker("for a test", "worker");
  EXPECT_TRUE(worker.wait_until(Clock::now()));
  worker.start([&] { may_end.get_future().wait(); });
  EXPECT_FALSE(worker.wait_until(Clock::now() + milliseconds(1)));
  may_end.set_value();
  EXPECT_TRUE(worker.wait_until(Clock::now() + hours(1)));
}

TEST(WorkerThread, ThrowsWhatTheLastCallThrew) {
  WorkerThread worker("for a test", "worker");
  worker.start([] { throw DataLossError("broken"); });
  EXPECT_THROW(worker.wait(), DataLossError);
  EXPECT_THROW(worker.wait(), DataLossError);
  EXPECT_NE(worker.take_error(), nullptr);
  EXPECT_EQ(worker.take_error(), nullptr);
  worker.wait();
  worker.start([] { throw DataLossError("broken"); });
  worker.wait_until(Clock::now() + hours(1));
  worker.start([] {});
  worker.wait();
}

TEST(WorkerThread, ItsEndWaitsForTheCall) {
  bool has_ended = false;
  {
    WorkerThread worker("for a test", "worker");
    worker.start([&] { has_ended = true; });
  }
  EXPECT_TRUE(has_ended);
}

TEST(WorkerThread, CanBeLeftToACallThatHangs) {
  std::promise<void> may_end;
  std::promise<std::exception_ptr> ended;
  {
    WorkerThread worker("for a test", "worker");
    worker.start([&] {
      may_end.get_future().wait();
      throw DataLossError("late");
    });
    worker.leave([&](const std::exception_ptr& error) { ended.set_value(error); });
  }
  may_end.set_value();
  const std::exception_ptr error = ended.get_future().get();
  ASSERT_NE(error, nullptr);
  EXPECT_THROW(std::rethrow_exception(error), DataLossError);
}

TEST(WorkerThread, TellsAtOnceWhatTheCallThrewThatHasEndedWhenItIsLeft) {
  std::optional<std::exception_ptr> told;
  WorkerThread worker("for a test", "worker");
  worker.start([] {});
  worker.wait();
  worker.leave([&](const std::exception_ptr& error) { told = error; });
  EXPECT_EQ(told, std::exception_ptr());
}

TEST(WorkerThread, SaysWhatThereIsNoThreadFor) {
  const NoMoreThreads none;
  EXPECT_THROW(WorkerThread("to read ahead with", "worker"), ResourceExhaustedError);
}

}  // namespace
}  // namespace cohort::internal
