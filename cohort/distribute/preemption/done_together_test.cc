// Tasks with real servers and sockets do something together, and one of them throws.
#include "cohort/distribute/preemption/done_together.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_servers.h"
#include "cohort/distribute/testing_tasks.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using distribute::WorkerServers;
using ::testing::Each;
using ::testing::HasSubstr;
using Errors = std::vector<std::exception_ptr>;
// What a task does; it may make calls of the group.
using Part = std::function<void(size_t task, train::SaveGroup& calls)>;

StopGroup group_of(WorkerServers& servers, size_t task, std::chrono::milliseconds patience = 20s) {
  return {.cluster = &servers.coordination(static_cast<int>(task)),
          .name = "test",
          .tasks = servers.tasks(),
          .self = task,
          .patience_for_call = patience};
}

void run_part(const StopGroup& group, train::SaveGroup& calls, const Part& part) {
  const std::vector<size_t> the_others = others(group);
  DoneTogether(group, "test/after 1", the_others, calls).run("the work", [&] {
    part(group.self, calls);
  });
}

// What each of the tasks that have a group of calls gets.
Errors run_with_calls(WorkerServers& servers, const Part& part) {
  Errors errors(servers.tasks().size());
  const auto program = [&](const distribute::Strategy& strategy, int task) {
    const auto self = static_cast<size_t>(task);
    try {
      run_part(group_of(servers, self), *strategy.core()->save_group(), part);
    } catch (...) {
      errors[self] = std::current_exception();
    }
    // The group can be used.
    strategy.core()->save_group()->barrier("", {"the next call", 20s});
  };
  distribute::run_all_tasks(static_cast<int>(errors.size()), 1, program);
  return errors;
}

// The same of tasks that have none.
Errors run_alone(WorkerServers& servers, const Part& part) {
  Errors errors(servers.tasks().size());
  std::vector<std::jthread> threads;
  for (size_t task = 0; task < errors.size(); ++task) {
    threads.emplace_back([&, task] {
      try {
        run_part(group_of(servers, task), *train::alone(), part);
      } catch (...) {
        errors[task] = std::current_exception();
      }
    });
  }
  threads.clear();
  return errors;
}

template <class Error>
std::string text_of(const std::exception_ptr& error) {
  return thrown<Error>([&] {
    if (error != nullptr) std::rethrow_exception(error);
  });
}

constexpr const char* kNoRoom = "the work of /job:worker/task:1 failed: no room";

TEST(DoneTogether, ThoseThatWaitInACallForOneThatHasThrownGetItsErrorAtOnce) {
  WorkerServers servers(3);
  const Errors errors = run_with_calls(servers, [](size_t task, train::SaveGroup& calls) {
    if (task == 1) throw ResourceExhaustedError("no room");
    calls.gather("mine", {"the parts", 10min});
  });
  EXPECT_EQ(text_of<ResourceExhaustedError>(errors[1]), "no room");
  for (const size_t waiting : {0, 2}) {
    EXPECT_EQ(text_of<ResourceExhaustedError>(errors[waiting]), kNoRoom);
  }
}

// So do those that make more calls after one that was refused, and those that swallow the refusal.
TEST(DoneTogether, AllComeToTheEndHoweverManyCallsTheyMake) {
  WorkerServers servers(2);
  const Errors errors = run_with_calls(servers, [](size_t task, train::SaveGroup& calls) {
    if (task == 1) throw ResourceExhaustedError("no room");
    for (int call = 0; call < 2; ++call) {
      EXPECT_THROW(calls.gather("mine", {"the parts", 10min}), FailedPreconditionError);
    }
  });
  EXPECT_EQ(text_of<ResourceExhaustedError>(errors[1]), "no room");
  EXPECT_EQ(text_of<ResourceExhaustedError>(errors[0]), kNoRoom);
}

TEST(DoneTogether, ACallThatOneTaskMakesAloneIsAnErrorOfAll) {
  WorkerServers servers(2);
  const Errors errors = run_with_calls(servers, [](size_t task, train::SaveGroup& calls) {
    if (task == 0) calls.gather("mine", {"the parts", 10min});
  });
  EXPECT_THAT(text_of<FailedPreconditionError>(errors[0]), HasSubstr("the parts"));
  EXPECT_THAT(text_of<FailedPreconditionError>(errors[1]),
              HasSubstr("the work of /job:worker/task:0 failed: tasks make different"));
}

TEST(DoneTogether, ReturnsWhenAllHaveReturned) {
  WorkerServers servers(3);
  const auto part = [](size_t task, train::SaveGroup& calls) {
    if (task == 2) calls.barrier("", {"a call", 0s});
  };
  EXPECT_THAT(run_alone(servers, part), Each(nullptr));
}

TEST(DoneTogether, WhatIsNoErrorOfAClassIsUnknownToTheOthers) {
  WorkerServers servers(2);
  const Errors errors = run_with_calls(servers, [](size_t task, train::SaveGroup& calls) {
    if (task == 1) throw 42;  // NOLINT
    calls.gather("mine", {"the parts", 10min});
  });
  EXPECT_THROW(std::rethrow_exception(errors[1]), int);
  EXPECT_THAT(text_of<UnknownError>(errors[0]), HasSubstr("the work of /job:worker/task:1 failed"));
}

TEST(DoneTogether, WhereAllThrowEachGetsItsOwnError) {
  WorkerServers servers(2);
  const Errors errors = run_alone(servers, [](size_t task, train::SaveGroup&) {
    throw ResourceExhaustedError(str("no room at ", task));
  });
  for (const size_t task : {0, 1}) {
    EXPECT_EQ(text_of<ResourceExhaustedError>(errors[task]), str("no room at ", task));
  }
}

TEST(DoneTogether, ATaskThatDoesNotEndItsPartIsNamed) {
  WorkerServers servers(2);
  EXPECT_THAT(
      thrown<DeadlineExceededError>([&] {
        run_part(group_of(servers, 0, 300ms), *train::alone(), [](size_t, train::SaveGroup&) {});
      }),
      HasSubstr("cannot end the work together: /job:worker/task:1 has not ended it for 300 ms"));
}

TEST(DoneTogether, ATaskThatLeavesInPlaceOfEndingItsPartIsNamed) {
  WorkerServers servers(2);
  servers.server(1).stop();
  EXPECT_THAT(thrown<UnavailableError>([&] {
                run_part(group_of(servers, 0), *train::alone(), [](size_t, train::SaveGroup&) {});
              }),
              HasSubstr("/job:worker/task:1 has left"));
}

}  // namespace
}  // namespace cohort::internal
