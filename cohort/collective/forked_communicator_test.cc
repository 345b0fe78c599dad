// A child of fork has copies of its parent's communicators, and must not do anything to the
// parent's group.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "cohort/collective/testing_conformance.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_fork.h"

namespace cohort::collective {
namespace {

using internal::in_forked_child;
using ::testing::HasSubstr;

// Those between processes.
class ForkedCommunicator : public CommunicatorConformance {
 protected:
  static void expect_sum(const Communicators& members) {
    expect_none(run_tasks(members, [](Communicator& member) {
      std::vector<float> values(100'000, 1);
      all_reduce(member, buffer_over(values, float32), {.name = "sum"});
      ASSERT_EQ(values, std::vector<float>(values.size(), 2));
    }));
  }
};

TEST_P(ForkedCommunicator, RefusesCallsAndTheGroupGoesOn) {
  const Communicators members = make(2);
  expect_sum(members);
  EXPECT_THAT(in_forked_child([&] {
                try {
                  members[0]->barrier({.name = "in the child"});
                } catch (const FailedPreconditionError& error) {
                  return std::string(error.what());
                }
                return std::string("no error");
              }),
              HasSubstr("the communicator was made before this process was forked"));
  expect_sum(members);
}

TEST_P(ForkedCommunicator, CanBeReleasedAndTheGroupGoesOn) {
  Communicators members = make(2);
  expect_sum(members);
  EXPECT_EQ(in_forked_child([&] {
              members[0].reset();
              return std::string("released");
            }),
            "released");
  expect_sum(members);
}

TEST_P(ForkedCommunicator, AnAbortInTheChildIsNoneOfTheGroup) {
  const Communicators members = make(2);
  expect_sum(members);
  EXPECT_EQ(in_forked_child([&] {
              members[0]->abort(std::make_exception_ptr(AbortedError("the child has failed")));
              return std::string("aborted");
            }),
            "aborted");
  expect_sum(members);
}

INSTANTIATE_TEST_SUITE_P(Backends, ForkedCommunicator, ::testing::ValuesIn(process_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cohort::collective
