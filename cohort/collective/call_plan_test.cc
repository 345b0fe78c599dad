#include "cohort/collective/call_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/forwarding_communicator.h"
#include "cohort/collective/testing_members.h"
#include "cohort/collective/testing_socket_communicator.h"

namespace cohort::collective {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Counts the calls that reach a backend.
class Counted final : public ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  int calls = 0;

 private:
  void before(CallOptions&, int64_t) override { ++calls; }
};

// Two tasks behind sockets: a backend that compares nothing.
class CallPlans : public ::testing::Test {
 protected:
  CallPlans() {
    for (const auto& member : make_socket_communicators(2)) {
      counted.push_back(std::make_shared<Counted>(member));
      members.push_back(checked(counted.back()));
      plans.push_back(std::make_shared<CallPlan>(3));
    }
  }
  // What each task threw.
  std::vector<std::exception_ptr> run(
      const std::function<void(CheckedCommunicator&, CallPlan&)>& fn) {
    std::vector<std::exception_ptr> errors(2);
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          fn(*members[rank], *plans[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }
  static void add_up(Communicator& member, CallPlan* plan, const char* name, size_t count = 2) {
    std::vector<float> values(count, 1.0f);
    all_reduce(member, {values.data(), static_cast<int64_t>(count), float32},
               {.name = name, .timeout = std::chrono::seconds(20), .plan = plan});
    for (const float value : values) ASSERT_EQ(value, 2.0f);
  }
  static void all_three(Communicator& member, CallPlan& plan) {
    for (const char* name : {"a", "b", "c"}) add_up(member, &plan, name);
  }
  // Calls of a task between two points.
  int calls_of(const std::function<void(CheckedCommunicator&, CallPlan&)>& fn) {
    const int before = counted[0]->calls;
    for (const auto& error : run(fn)) EXPECT_EQ(message_of<Error>(error), "no error");
    return counted[0]->calls - before;
  }

  std::vector<std::shared_ptr<Counted>> counted;
  std::vector<std::shared_ptr<CheckedCommunicator>> members;
  std::vector<std::shared_ptr<CallPlan>> plans;
};

TEST_F(CallPlans, AreAgreedOnOnceForAllTheirCalls) {
  EXPECT_EQ(calls_of(all_three), 3 + 3);
  EXPECT_EQ(calls_of(all_three), 3 + 1);
  EXPECT_EQ(calls_of(all_three), 3 + 1);
}

TEST_F(CallPlans, OtherCallsBetweenThePlannedOnesAreAgreedOnEachTime) {
  const auto interrupted = [](Communicator& member, CallPlan& plan) {
    add_up(member, &plan, "a");
    add_up(member, nullptr, "loss");
    add_up(member, &plan, "b");
    add_up(member, &plan, "c");
  };
  EXPECT_EQ(calls_of(interrupted), 2 * 4);
  EXPECT_EQ(calls_of(interrupted), 2 * 4);
  EXPECT_EQ(calls_of(all_three), 2 * 3);  // without them, the plan is learnt
  EXPECT_EQ(calls_of(all_three), 3 + 1);
}

TEST_F(CallPlans, ATaskThatBreaksThePromiseIsNamedAndNobodyGetsANumber) {
  calls_of(all_three);
  std::atomic<int> results{0};
  const auto errors = run([&](Communicator& member, CallPlan& plan) {
    add_up(member, &plan, "a");
    add_up(member, &plan, "b", member.rank() == 1 ? 5 : 2);
    ++results;
  });
  EXPECT_EQ(results.load(), 0);
  const auto both = AllOf(HasSubstr("task 1 call 4, all_reduce 'b' of 5 float32"),
                          HasSubstr("as agreed in earlier steps, all_reduce 'b' of 2 float32"));
  for (const auto& error : errors) EXPECT_THAT(message_of<FailedPreconditionError>(error), both);
}

TEST_F(CallPlans, ACallOfNoPlanBreaksThePromiseToo) {
  calls_of(all_three);
  const auto errors = run([&](Communicator& member, CallPlan& plan) {
    add_up(member, &plan, "a");
    add_up(member, member.rank() == 0 ? nullptr : &plan, "b");
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error), HasSubstr("task 0 call 4"));
  }
}

TEST_F(CallPlans, AStepThatEndsBeforeItsPlanBreaksThePromiseToo) {
  calls_of(all_three);
  const auto errors = run([&](CheckedCommunicator& member, CallPlan& plan) {
    member.begin_step();
    add_up(member, &plan, "a");
    if (member.rank() == 1) {
      member.end_step();
      member.begin_step();
    }
    add_up(member, &plan, "b");
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                AllOf(HasSubstr("task 1 call 4, all_reduce 'b' of 2 float32, in step 2;"),
                      HasSubstr("all_reduce 'b' of 2 float32, in step 1;")));
  }
}

TEST_F(CallPlans, ThatGoOnInTheNextStepAreAgreedOnEachTime) {
  const auto two_steps = [](CheckedCommunicator& member, CallPlan& plan) {
    member.begin_step();
    add_up(member, &plan, "a");
    add_up(member, &plan, "b");
    member.end_step();
    member.begin_step();
    add_up(member, &plan, "c");
    member.end_step();
  };
  EXPECT_EQ(calls_of(two_steps), 2 * 3);
  EXPECT_EQ(calls_of(two_steps), 2 * 3);
}

TEST_F(CallPlans, AnotherFirstCallIsRefusedOnBothAndTheGroupGoesOn) {
  calls_of(all_three);
  for (const auto& error : run([&](Communicator&member, CallPlan&plan) {
         add_up(member, &plan, member.rank() == 0 ? "a" : "z");
       })) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                AllOf(HasSubstr("'a' of 2 float32, the first of 3 planned calls"),
                      HasSubstr("'z' of 2 float32")));
  }
  EXPECT_EQ(calls_of(all_three), 2 * 3);  // learnt again
  EXPECT_EQ(calls_of(all_three), 3 + 1);
}

TEST_F(CallPlans, MayEndWithThePromiseUnkept) {
  calls_of(all_three);
  calls_of([](Communicator& member, CallPlan& plan) { add_up(member, &plan, "a"); });
  for (auto& plan : plans) plan = std::make_shared<CallPlan>(1);  // the old ones are gone
  members[0]->abort(std::make_exception_ptr(OutOfRangeError("no such row")));
  const auto errors = run([](Communicator& member, CallPlan& plan) { add_up(member, &plan, "x"); });
  EXPECT_THAT(message_of<OutOfRangeError>(errors[0]), HasSubstr("no such row"));
  EXPECT_NE(errors[1], nullptr);
}

}  // namespace
}  // namespace cohort::collective
