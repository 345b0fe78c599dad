#include "cohort/collective/slow_wait.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/collective/shared_memory/shared_memory_communicator.h"
#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What is logged while task 1 comes to a barrier 150 ms later than task 0.
std::string log_of_a_late_task(Communicators members) {
  ::testing::internal::CaptureStderr();
  expect_none(run_tasks(members, [](Communicator& member) {
    if (member.rank() == 1) std::this_thread::sleep_for(milliseconds(150));  // what this is about
    member.barrier({.name = "step"});
  }));
  members.clear();
  return ::testing::internal::GetCapturedStderr();
}

TEST(SlowWait, InSharedMemoryNamesWhoIsLate) {
  const auto make = [](milliseconds slow_after) {
    return make_group(2, 0, [&](GroupMember member) {
      member.slow_after = slow_after;
      return make_shared_memory_communicator(member);
    });
  };
  EXPECT_THAT(log_of_a_late_task(make(milliseconds(40))),
              AllOf(HasSubstr("/job:worker/task:0 has waited "),
                    HasSubstr(" in step for /job:worker/task:1\n")));
  EXPECT_THAT(log_of_a_late_task(make(milliseconds(60'000))), Not(HasSubstr("has waited")));
}

// As two strategies that two workers use in opposite order.
TEST(SlowWait, ATaskThatWaitsInAnotherGroupMayBeTheReason) {
  const auto make = [] {
    return make_group(2, 0, [](GroupMember member) {
      member.slow_after = milliseconds(20);
      return make_shared_memory_communicator(member);
    });
  };
  const Communicators groups[] = {make(), make()};
  ::testing::internal::CaptureStderr();
  const auto errors = run_tasks(groups[0], [&](Communicator& member) {
    const internal::ScopedTask as_own(internal::Task::named("worker", member.rank()));
    const auto rank = static_cast<size_t>(member.rank());
    const auto first = checked(groups[rank][rank]), second = checked(groups[1 - rank][rank]);
    first->barrier({.name = "step", .timeout = milliseconds(150)});
    second->barrier({.name = "step", .timeout = milliseconds(150)});
  });
  const auto says_so = HasSubstr("(this task is in 2 groups; where it waits in one of them");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), says_so);
  for (const auto& error : errors) EXPECT_THAT(message_of<DeadlineExceededError>(error), says_so);
}

TEST(SlowWait, OverCallsNamesWhoIsLate) {
  auto members = make_server_group(2, 0, [](GroupMember member, internal::ServerCore& server) {
    member.slow_after = milliseconds(40);
    return make_transport_communicator(member, make_rpc_transport(member, server));
  });
  EXPECT_THAT(log_of_a_late_task(std::move(members)),
              AllOf(HasSubstr("/job:worker/task:0 has waited "),
                    HasSubstr(" in a collective call for /job:worker/task:1\n")));
}

}  // namespace
}  // namespace cohort::collective
