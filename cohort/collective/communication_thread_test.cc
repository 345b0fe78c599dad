#include "cohort/collective/communication_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <vector>

#include "cohort/collective/sole_communicator.h"
#include "cohort/core/task.h"

namespace cohort::collective {
namespace {

using internal::ScopedTask;
using internal::Task;
using ::testing::ElementsAre;

class Recorded final : public PostedCall {
 public:
  Recorded(std::vector<int>& order, int number) : order_(order), number_(number) {}
  void make(Communicator&) noexcept override {
    if (wait_for.valid()) wait_for.wait();
    order_.push_back(number_);
    thread = std::this_thread::get_id();
    task = &Task::current();
  }
  std::future<void> wait_for;
  std::thread::id thread;
  const Task* task = nullptr;

 private:
  std::vector<int>& order_;
  int number_;
};

TEST(CommunicationThread, MakesCallsInTheirOrderOnOneThread) {
  SoleCommunicator sole;
  CommunicationThread thread(sole);
  std::vector<int> order;
  Recorded first(order, 1), second(order, 2), third(order, 3);
  std::promise<void> go;
  first.wait_for = go.get_future();
  thread.post(first);
  thread.post(second);
  thread.post(third);
  go.set_value();
  thread.drain();
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
  EXPECT_NE(first.thread, std::this_thread::get_id());
  EXPECT_EQ(first.thread, third.thread);
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

}  // namespace
}  // namespace cohort::collective
