#include "cohort/collective/communication_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <vector>

#include "cohort/collective/sole_communicator.h"
#include "cohort/core/program/task.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/threads/testing_threads.h"

namespace cohort::collective {
namespace {

using internal::ScopedTask;
using internal::Task;
using ::testing::ElementsAre;

class Recorded final : public PostedCall {
 public:
  Recorded(std::vector<int>& order, int number) : order_(order), number_(number) {}
  void make(Communicator&) noexcept override {
    thread = std::this_thread::get_id();
    task = &Task::current();
    if (wait_for.valid()) {
      begun.set_value();
      wait_for.wait();
    }
    order_.push_back(number_);
  }
  std::promise<void> begun;  // set where there is something to wait for
  std::future<void> wait_for;
  std::thread::id thread;
  const Task* task = nullptr;

 private:
  std::vector<int>& order_;
  int number_;
};

TEST(CommunicationThread, ACallThatFindsNoThreadIsNotPosted) {
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  {
    const internal::NoMoreThreads none;
    Recorded refused(order, 1);
    internal::expect_error<ResourceExhaustedError>([&] { thread.post(refused); },
                                                   "no thread for calls to other tasks");
  }
  Recorded next(order, 2);
  thread.post(next);
  thread.drain();
  EXPECT_THAT(order, ElementsAre(2));
}

TEST(CommunicationThread, MakesCallsInTheirOrderWhileWhoPostsGoesOn) {
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  Recorded first(order, 1), second(order, 2), third(order, 3);
  std::promise<void> go;
  first.wait_for = go.get_future();
  thread.post(first);
  first.begun.get_future().wait();
  EXPECT_NE(first.thread, std::this_thread::get_id());
  thread.post(second);
  thread.post(third);
  go.set_value();
  thread.drain();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  thread.post(second);  // again
  thread.drain();
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 2));
}

TEST(CommunicationThread, WorksForTheTaskOfWhoPosts) {
  const Task& task = Task::named("worker", 3);
  const ScopedTask as_worker(task);
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  Recorded call(order, 1);
  thread.post(call);
  thread.drain();
  EXPECT_EQ(call.task, &task);
}

TEST(CommunicationThread, DrainsWhereNothingWasPostedAndEndsWithWhatIsLeft) {
  SoleCommunicator sole;
  std::vector<int> order;
  Recorded call(order, 1);
  {
    CommunicationThread thread(sole);
    thread.drain();
    thread.post(call);
  }
  EXPECT_THAT(order, ElementsAre(1));
}

TEST(CommunicationThread, WhoDrainsMakesWhatNobodyHasBegun) {
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  Recorded first(order, 1), second(order, 2), third(order, 3);
  thread.post_before_drain(first);
  thread.drain();
  EXPECT_EQ(first.thread, std::this_thread::get_id());
  std::promise<void> go;
  second.wait_for = go.get_future();
  thread.post(second);
  second.begun.get_future().wait();
  thread.post_before_drain(third);
  go.set_value();
  thread.drain();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(CommunicationThread, SeveralThreadsMayDrain) {
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  std::vector<std::unique_ptr<Recorded>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back(std::make_unique<Recorded>(order, i));
  for (size_t i = 0; i < calls.size(); ++i) {
    i % 3 == 0 ? thread.post(*calls[i]) : thread.post_before_drain(*calls[i]);
  }
  std::vector<std::thread> drains;
  for (int i = 0; i < 3; ++i) drains.emplace_back([&] { thread.drain(); });
  for (std::thread& one : drains) one.join();
  ASSERT_EQ(order.size(), calls.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace cohort::collective
