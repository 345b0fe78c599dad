#include "cohort/parameter_server/leadership/coordinator_fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/leadership/leadership_message.h"

namespace cohort::internal {
namespace {

using ::testing::HasSubstr;

const TaskId kCoordinator{"chief", 0};
const TaskId kFirstWorker{"worker", 1};

TEST(CoordinatorFence, ATaskThatNobodyTookHasNothing) {
  const CoordinatorFence fence({"ps", 0});
  EXPECT_THAT(thrown<UnavailableError>([&] { fence.check_reader(kCoordinator, 0); }),
              HasSubstr("/job:ps/task:0 was started again"));
  EXPECT_THAT(thrown<UnavailableError>([&] { fence.check_closure(session_id(1, 1)); }),
              HasSubstr("started again"));
  EXPECT_EQ(fence.refused(), 0);
}

TEST(CoordinatorFence, ALaterCoordinatorFencesTheEarlierOne) {
  CoordinatorFence fence({"ps", 0});
  int64_t cleared = 0;
  fence.on_new_generation([&](int64_t generation) { cleared = generation; });
  fence.take(1, 11);
  EXPECT_EQ(cleared, 1);
  { const auto pass = fence.admit_change(kCoordinator, session_id(1, 0)); }
  fence.take(3, 33);
  EXPECT_EQ(cleared, 3);
  EXPECT_EQ(fence.generation(), 3);
  // The old one cannot change anything, nor take the task back, nor can another of that generation.
  EXPECT_THAT(thrown<AbortedError>(
                  [&] { const auto p = fence.admit_change(kCoordinator, session_id(1, 0)); }),
              HasSubstr("fenced, generation 3"));
  EXPECT_THAT(thrown<AbortedError>([&] { fence.check_generation(1); }),
              HasSubstr("fenced, generation 3"));
  // What it would read are values of other variables.
  EXPECT_THAT(thrown<AbortedError>([&] { fence.check_reader(kFirstWorker, session_id(1, 7)); }),
              HasSubstr("the reading of /job:worker/task:1 is of generation 1"));
  fence.check_reader(kCoordinator, session_id(3, 0));
  fence.check_reader({"evaluator", 0}, 0);
  EXPECT_EQ(fence.refused(), 3);
  for (const int64_t generation : {1, 2, 3}) {
    try {
      fence.take(generation, 11);
      ADD_FAILURE() << generation;
    } catch (const AbortedError& error) {
      ASSERT_NE(error_detail(error), nullptr);
      EXPECT_EQ(error_detail(error)->generation, 3);
      EXPECT_EQ(error_detail(error)->cause, Cause::kFenced);
    }
  }
  fence.take(3, 33);  // the same again
  fence.check_generation(3);
}

TEST(CoordinatorFence, AnEarlierStrategyOfTheSameProgramDoesNotTakeATaskBack) {
  CoordinatorFence fence({"ps", 0});
  fence.take(1, 11, 0, {.program = 5, .made = 2});
  try {
    fence.take(2, 22, 0, {.program = 5, .made = 1});
    ADD_FAILURE();
  } catch (const AbortedError& error) {
    ASSERT_NE(error_detail(error), nullptr);
    EXPECT_EQ(error_detail(error)->cause, Cause::kSuperseded);
  }
  EXPECT_EQ(fence.generation(), 1);
  // A program that was started again begins to count anew.
  fence.take(2, 33, 0, {.program = 6, .made = 1});
  EXPECT_EQ(fence.generation(), 2);
}

TEST(CoordinatorFence, AClaimSaysWhoseItIs) {
  const LeaderClaim claim = decode_leader_claim(
      encode(LeaderClaim{.generation = 3, .origin = {.program = uint64_t{1} << 63, .made = 7}}));
  EXPECT_EQ(claim.origin.program, uint64_t{1} << 63);
  EXPECT_EQ(claim.origin.made, 7u);
}

TEST(CoordinatorFence, AWorkerThatWasLostChangesNothingAnyMore) {
  CoordinatorFence fence({"ps", 0});
  fence.take(2, 5);
  { const auto pass = fence.admit_change(kFirstWorker, session_id(2, 7)); }
  fence.refuse_below(1, session_id(2, 8));
  EXPECT_THAT(thrown<AbortedError>(
                  [&] { const auto p = fence.admit_change(kFirstWorker, session_id(2, 7)); }),
              HasSubstr("/job:worker/task:1 was lost"));
  EXPECT_EQ(fence.refused(), 1);
  { const auto other = fence.admit_change({"worker", 2}, session_id(2, 7)); }
  { const auto again = fence.admit_change(kFirstWorker, session_id(2, 9)); }
}

TEST(CoordinatorFence, AChangeThatWasAdmittedEndsBeforeTheTaskIsTaken) {
  CoordinatorFence fence({"ps", 0});
  fence.take(1, 1);
  auto pass = std::make_unique<CoordinatorFence::ChangePass>(
      fence.admit_change(kCoordinator, session_id(1, 0)));
  std::atomic<bool> is_taken{false};
  std::thread later([&] {
    fence.take(2, 2);
    is_taken = true;
  });
  // A second change waits for the new coordinator, and is refused.
  std::thread late([&] {
    try {
      while (true) const auto more = fence.admit_change(kCoordinator, session_id(1, 0));
    } catch (const AbortedError&) {
    }
    EXPECT_TRUE(fence.generation() == 2);
  });
  EXPECT_FALSE(is_taken);
  pass.reset();
  later.join();
  late.join();
}

TEST(CoordinatorFence, AWorkerRunsTheClosuresOfItsSessionOnly) {
  CoordinatorFence fence({"worker", 1});
  fence.take(1, 4, session_id(1, 1));
  fence.check_closure(session_id(1, 1));
  fence.take(1, 4, session_id(1, 2));
  EXPECT_THAT(thrown<AbortedError>([&] { fence.check_closure(session_id(1, 1)); }),
              HasSubstr("an earlier session"));
  fence.check_closure(session_id(1, 2));
  EXPECT_EQ(fence.refused(), 1);
}

TEST(LeadershipMessage, ComesBackAsItWas) {
  const LeaderClaim claim = decode_leader_claim(encode(LeaderClaim{7, session_id(7, 3)}));
  EXPECT_EQ(claim.generation, 7);
  EXPECT_EQ(claim.session, session_id(7, 3));
  const RefuseWorker refusal = decode_refuse_worker(encode(RefuseWorker{7, 4, session_id(7, 5)}));
  EXPECT_EQ(refusal.worker, 4);
  EXPECT_EQ(refusal.below, session_id(7, 5));
  EXPECT_THROW(decode_leader_claim({.control = "\x08"}), DataLossError);
  EXPECT_THROW(decode_leader_claim(encode(LeaderClaim{int64_t{1} << 40, 0})), InvalidArgumentError);
  rpc::Message message{.control = ""};
  EXPECT_EQ(session_of(message), 0u);
  stamp(message, session_id(2, 9));
  EXPECT_EQ(session_of(message), session_id(2, 9));
}

}  // namespace
}  // namespace cohort::internal
