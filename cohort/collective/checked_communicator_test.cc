// Row 20 of the fault matrix: every field in which the calls of two tasks can differ, over a
// backend that compares fingerprints, one that does so in calls of few bytes, and one that does
// not.
#include "cohort/collective/checked_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "cohort/collective/in_process_communicator.h"
#include "cohort/collective/testing_conformance.h"
#include "cohort/collective/testing_members.h"
#include "cohort/collective/testing_socket_communicator.h"

namespace cohort::collective {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

// The same call on every task but for one field, which is `odd` on one of them.
struct Difference {
  const char* name;
  std::function<void(Communicator&, std::vector<float>&, bool odd)> call;
  const char* usual;  // how errors show either
  const char* other;
};

Buffer floats(std::vector<float>& values, int64_t count = 4, DType dtype = float32) {
  return {values.data(), count, dtype};
}

const Difference kDifferences[] = {
    {"Operation",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       if (odd) return broadcast(member, floats(values), 0, {.name = "x"});
       all_reduce(member, floats(values), {.name = "x"});
     },
     "all_reduce 'x' of 4 float32", "broadcast 'x' from task 0 of 4 float32"},
    {"Name",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_reduce(member, floats(values), {.name = odd ? "accuracy" : "losses"});
     },
     "'losses'", "'accuracy'"},
    {"Signature",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_reduce(member, floats(values), {.name = "x", .signature = odd ? "[4, 1]" : "[2, 2]"});
     },
     "[2, 2]", "[4, 1]"},
    {"Count",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_reduce(member, floats(values, odd ? 3 : 4), {.name = "x"});
     },
     "of 4 float32", "of 3 float32"},
    {"CountOfMany",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       std::vector<float> many(5000);
       if (odd) return all_reduce(member, floats(many, 5000), {.name = "x"});
       all_reduce(member, floats(values), {.name = "x"});
     },
     "of 4 float32", "of 5000 float32"},
    {"DType",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_reduce(member, floats(values, 4, odd ? int32 : float32), {.name = "x"});
     },
     "of 4 float32", "of 4 int32"},
    {"Root",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       broadcast(member, floats(values), odd ? 1 : 0, {.name = "x"});
     },
     "from task 0", "from task 1"},
    {"PartsOfAGather",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_gather(member, floats(values),
                  odd ? std::vector<int64_t>{0, 4, 0} : std::vector<int64_t>{1, 2, 1},
                  {.name = "x"});
     },
     "in parts of 1 2 1", "in parts of 0 4 0"},
    {"PartsOfAScatter",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       const Buffer mine = floats(values);
       member
           .reduce_scatter({&mine, 1},
                           odd ? std::vector<int64_t>{2, 1, 1} : std::vector<int64_t>{1, 2, 1},
                           {.name = "x"})
           ->wait(Deadline::max());
     },
     "in parts of 1 2 1", "in parts of 2 1 1"},
    {"Barrier",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       if (odd) return member.barrier({.name = "x"});
       all_reduce(member, floats(values), {.name = "x"});
     },
     "all_reduce 'x'", "barrier 'x'"},
    {"Order",
     [](Communicator& member, std::vector<float>& values, bool odd) {
       all_reduce(member, floats(values), {.name = odd ? "second" : "first"});
       all_reduce(member, floats(values), {.name = odd ? "first" : "second"});
     },
     "'first'", "'second'"},
};

// Three tasks, each on a thread of its own where it calls something.
class ThreeTasks {
 public:
  using Call = std::function<void(CheckedCommunicator&, std::vector<float>&)>;

  explicit ThreeTasks(const Backend& backend) : values(3, {1, 2, 3, 4}) {
    for (const auto& member : backend.make(3, 1)) members.push_back(checked(member));
  }

  // What each task has thrown.
  std::vector<std::exception_ptr> run(const Call& call) {
    std::vector<std::exception_ptr> errors(members.size());
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < members.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          call(*members[rank], values[rank]);
        } catch (...) {
          errors[rank] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return errors;
  }

  std::vector<std::shared_ptr<CheckedCommunicator>> members;
  std::vector<std::vector<float>> values;
};

using Parameters = std::tuple<Backend, Difference, int>;
class DifferentCalls : public ::testing::TestWithParam<Parameters> {};

TEST_P(DifferentCalls, AreRefusedOnEveryTaskBeforeAnythingMoves) {
  const auto& [backend, difference, odd_rank] = GetParam();
  ThreeTasks tasks(backend);
  const auto run = [&, odd = odd_rank, &call = difference.call](bool differ) {
    return tasks.run([&](Communicator& member, std::vector<float>& values) {
      call(member, values, differ && member.rank() == odd);
    });
  };
  for (const auto& error : run(true)) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                AllOf(HasSubstr(difference.usual), HasSubstr(difference.other)));
  }
  for (const auto& of_task : tasks.values) EXPECT_EQ(of_task, (std::vector<float>{1, 2, 3, 4}));
  for (const auto& error : run(false)) EXPECT_EQ(message_of<Error>(error), "no error");
}

std::string name_of_case(const ::testing::TestParamInfo<Parameters>& info) {
  return internal::str(std::get<0>(info.param).name, std::get<1>(info.param).name, "OnTask",
                       std::get<2>(info.param));
}

std::vector<Backend> backends_of_each_kind() {
  std::vector<Backend> backends = unchecked_backends();
  std::erase_if(backends, [](const Backend& backend) {
    return backend.name != "InProcess" && backend.name != "Sockets" && backend.name != "Calls";
  });
  return backends;
}
INSTANTIATE_TEST_SUITE_P(All, DifferentCalls,
                         ::testing::Combine(::testing::ValuesIn(backends_of_each_kind()),
                                            ::testing::ValuesIn(kDifferences),
                                            ::testing::Values(0, 2)),
                         name_of_case);

// A task that leaves a call out makes its next one, of the same name and form, in another step.
class CallsOfSteps : public ::testing::TestWithParam<Backend> {
 protected:
  static void add_up(Communicator& member, std::vector<float>& values) {
    all_reduce(member, floats(values), {.name = "losses"});
  }
  // On every task, by an error that says when tasks 0 and 1 make the call, and what the task did
  // that is ahead of the other.
  void expect_refused(const ThreeTasks::Call& call, const char* task_0, const char* task_1,
                      int ahead, const char* fewer_calls) {
    const auto name = [&](int rank) { return tasks.members[0]->task_name(rank); };
    const auto made = [&](int rank, const char* when) {
      return HasSubstr(name(rank) + " call 0, all_reduce 'losses' of 4 float32, " + when + ";");
    };
    const auto says = HasSubstr(name(ahead) + " has made fewer calls than " + name(1 - ahead) +
                                " " + fewer_calls + " (");
    for (const auto& error : tasks.run(call)) {
      EXPECT_THAT(message_of<FailedPreconditionError>(error),
                  AllOf(made(0, task_0), made(1, task_1), says));
    }
    for (const auto& values : tasks.values) EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4}));
  }

  ThreeTasks tasks{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(All, CallsOfSteps, ::testing::ValuesIn(backends_of_each_kind()),
                         [](const auto& info) { return info.param.name; });

TEST_P(CallsOfSteps, DoNotMeetThoseOfTheNextStep) {
  expect_refused(
      [](CheckedCommunicator& member, std::vector<float>& values) {
        for (int step = 1; step <= 2; ++step) {
          member.begin_step();
          if (step == 2 || member.rank() != 1) add_up(member, values);
          member.end_step();
        }
      },
      "in step 1", "in step 2", 1, "in step 1");
}

TEST_P(CallsOfSteps, DoNotMeetThoseAfterTheStep) {
  expect_refused(
      [](CheckedCommunicator& member, std::vector<float>& values) {
        member.begin_step();
        if (member.rank() != 1) add_up(member, values);
        member.end_step();
        add_up(member, values);
      },
      "in step 1", "after step 1", 1, "in step 1");
}

TEST_P(CallsOfSteps, DoNotMeetThoseBeforeTheStep) {
  expect_refused(
      [](CheckedCommunicator& member, std::vector<float>& values) {
        if (member.rank() == 1) add_up(member, values);
        member.begin_step();
        add_up(member, values);
        member.end_step();
      },
      "in step 1", "before step 1", 0, "before step 1");
}

TEST_P(CallsOfSteps, MeetAfterStepsWithoutCallsAndEndsWithoutSteps) {
  const auto errors = tasks.run([](CheckedCommunicator& member, std::vector<float>& values) {
    if (member.rank() == 1) member.end_step();
    for (int step = 1; step <= 3; ++step) {
      member.begin_step();
      if (step == 3) add_up(member, values);
      member.end_step();
      if (member.rank() == 1) member.end_step();
    }
    add_up(member, values);
  });
  for (const auto& error : errors) EXPECT_EQ(message_of<Error>(error), "no error");
  for (const auto& values : tasks.values) EXPECT_EQ(values, (std::vector<float>{9, 18, 27, 36}));
}

}  // namespace
}  // namespace cohort::collective
