#include "cohort/collective/thread_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "cohort/collective/testing_members.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(ThreadGroup, LeaderSeesWhatEveryMemberPassed) {
  ThreadGroup group(4, kNoSpin);
  std::vector<int> values{1, 10, 100, 1000};
  int sum = 0;
  run_all(group, [&](int rank) {
    group.meet(rank, "sum", &values[rank], [&](std::span<void* const> all) {
      for (void* value : all) sum += *static_cast<int*>(value);
    });
    EXPECT_EQ(sum, 1111);
  });
}

TEST(ThreadGroup, MeetsManyTimesInManyRounds) {
  ThreadGroup group(3, std::chrono::microseconds(20));
  for (int round = 0; round < 20; ++round) {
    int total = 0;
    run_all(group, [&](int rank) {
      for (int i = 0; i < 50; ++i) {
        group.meet(rank, "count", nullptr, [&](std::span<void* const>) { ++total; });
      }
    });
    EXPECT_EQ(total, 50);
  }
}

TEST(ThreadGroup, LeadersErrorReachesEveryMember) {
  ThreadGroup group(3, kNoSpin);
  const auto errors = run_members(group, {}, [&](int rank) {
    group.meet(rank, "merge", nullptr,
               [](std::span<void* const>) { throw NotFoundError("nothing here"); });
  });
  for (const auto& error : errors) EXPECT_EQ(message_of<NotFoundError>(error), "nothing here");
}

TEST(ThreadGroup, DifferentMeetingsAreNamed) {
  ThreadGroup group(2, kNoSpin);
  const auto errors = run_members(group, {}, [&](int rank) {
    group.meet(rank, rank == 0 ? "merge_call" : "all_reduce", nullptr, [](auto) {});
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<FailedPreconditionError>(error),
                HasSubstr("replica 0 in merge_call, replica 1 in all_reduce"));
  }
}

TEST(ThreadGroup, MemberThatLeavesBreaksTheMeetingOfTheOthers) {
  ThreadGroup group(3, kNoSpin);
  const auto errors = run_members(group, {}, [&](int rank) {
    if (rank != 1) group.meet(rank, "merge_call", nullptr, [](auto) {});
  });
  EXPECT_EQ(errors[1], nullptr);
  for (const int rank : {0, 2}) {
    EXPECT_THAT(message_of<FailedPreconditionError>(errors[rank]),
                HasSubstr("different number of merge_call"));
    EXPECT_THAT(message_of<FailedPreconditionError>(errors[rank]), HasSubstr("replica 1"));
  }
}

TEST(ThreadGroup, FailureOfOneMemberIsGivenToTheOthersAsSuch) {
  ThreadGroup group(3, kNoSpin);
  const auto errors = run_members(group, {}, [&](int rank) {
    if (rank == 2) throw OutOfRangeError("mine");
    group.meet(rank, "merge_call", nullptr, [](auto) {});
  });
  EXPECT_EQ(message_of<OutOfRangeError>(errors[2]), "mine");
  EXPECT_THAT(message_of<GroupBrokenError>(errors[0]), HasSubstr("another of its replicas failed"));
  EXPECT_THAT(message_of<GroupBrokenError>(errors[1]), HasSubstr("another of its replicas failed"));
}

TEST(ThreadGroup, MemberThatDoesNotComeIsNamedAtTheDeadline) {
  ThreadGroup group(2, kNoSpin);
  std::atomic<bool> timed_out{false};
  const auto errors = run_members(group, {.timeout = milliseconds(20)}, [&](int rank) {
    if (rank == 0) {
      try {
        group.meet(0, "all_reduce", nullptr, [](auto) {});
      } catch (...) {
        timed_out = true;
        throw;
      }
    } else {
      while (!timed_out) std::this_thread::yield();
      group.meet(1, "all_reduce", nullptr, [](auto) { FAIL() << "the barrier was given up"; });
    }
  });
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[0]),
              HasSubstr("in all_reduce for replica 1 (still in its step)"));
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[1]), HasSubstr("replica 1"));
}

TEST(ThreadGroup, NextRoundIsWholeAfterAFailure) {
  ThreadGroup group(2, kNoSpin);
  run_members(group, {}, [&](int rank) {
    if (rank == 1) throw OutOfRangeError("mine");
    group.meet(rank, "merge_call", nullptr, [](auto) {});
  });
  int met = 0;
  run_all(group, [&](int rank) { group.meet(rank, "merge_call", nullptr, [&](auto) { ++met; }); });
  EXPECT_EQ(met, 1);
  EXPECT_EQ(group.error(), nullptr);
}

TEST(ThreadGroup, SequentialRoundsRunOneMemberAtATimeInOrder) {
  ThreadGroup group(3, kNoSpin);
  std::vector<int> order;  // no lock: that is the point
  const auto errors = run_members(group, {.sequential = true}, [&](int rank) {
    order.push_back(rank);
    group.meet(rank, "merge_call", nullptr, [&](auto) { order.push_back(-1); });
    order.push_back(10 + rank);
  });
  for (const auto& error : errors) EXPECT_EQ(error, nullptr);
  EXPECT_THAT(order, ::testing::ElementsAre(0, 1, 2, -1, 10, 11, 12));
}

TEST(ThreadGroup, SequentialRoundEndsWhereAMemberFails) {
  ThreadGroup group(3, kNoSpin);
  int begun = 0;
  const auto errors = run_members(group, {.sequential = true}, [&](int rank) {
    ++begun;
    if (rank == 1) throw OutOfRangeError("mine");
  });
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(message_of<OutOfRangeError>(errors[1]), "mine");
}

// In each round the members meet and share, in turns; in some of them a member fails.
TEST(ThreadGroup, SequentialRoundsMayMeetAndShareManyTimes) {
  constexpr int kMembers = 5, kRounds = 200;
  ThreadGroup group(kMembers, kNoSpin);
  for (int round = 0; round < kRounds; ++round) {
    const int failing = round % 10 == 9 ? round / 10 % kMembers : -1;
    int inside = 0, meetings = 0, shares = 0;  // no locks
    const auto work = [&] {
      EXPECT_EQ(++inside, 1);
      --inside;
    };
    const auto errors = run_members(group, {.sequential = true}, [&](int rank) {
      for (int i = 0; i < 3; ++i) {
        work();
        group.meet(rank, "meet", nullptr, [&](auto) { ++meetings; });
        if (rank == failing && i == 1) throw OutOfRangeError("mine");
        work();
        group.share(
            rank, "share", nullptr, [](auto) {}, [&](auto) { ++shares; });
      }
    });
    for (int rank = 0; rank < kMembers; ++rank) {
      EXPECT_EQ(errors[static_cast<size_t>(rank)] == nullptr, failing < 0) << round;
    }
    EXPECT_EQ(meetings, failing < 0 ? 3 : 2);
    EXPECT_EQ(shares, failing < 0 ? 3 * kMembers : kMembers);
  }
}

TEST(ThreadGroup, ShareRunsWorkOnEveryMemberUntilAllHaveFinished) {
  ThreadGroup group(4, kNoSpin);
  std::vector<std::vector<int>> rows(4, std::vector<int>(4, 0));
  run_all(group, [&](int rank) {
    group.share(
        rank, "transpose", &rows[rank], [](auto) {},
        [rank](std::span<void* const> all) {
          for (void* row : all) (*static_cast<std::vector<int>*>(row))[rank] = rank + 1;
        });
    EXPECT_THAT(rows[rank], ::testing::ElementsAre(1, 2, 3, 4));
  });
}

TEST(ThreadGroup, ShareDoesNoWorkWhereTheCheckRefuses) {
  ThreadGroup group(2, kNoSpin);
  std::atomic<int> worked{0};
  const auto errors = run_members(group, {}, [&](int rank) {
    group.share(
        rank, "work", nullptr, [](auto) { throw InvalidArgumentError("no"); },
        [&](auto) { ++worked; });
  });
  EXPECT_EQ(worked, 0);
  for (const auto& error : errors) EXPECT_EQ(message_of<InvalidArgumentError>(error), "no");
}

TEST(ThreadGroup, ShareFinishesOnTheOthersWhereWorkFailsOnOne) {
  ThreadGroup group(3, kNoSpin);
  std::atomic<int> worked{0};
  const auto errors = run_members(group, {}, [&](int rank) {
    group.share(
        rank, "work", nullptr, [](auto) {},
        [&](auto) {
          if (rank == 1) throw ResourceExhaustedError("no memory");
          ++worked;
        });
  });
  EXPECT_EQ(worked, 2);
  EXPECT_EQ(message_of<ResourceExhaustedError>(errors[1]), "no memory");
  EXPECT_EQ(errors[0], nullptr);
}

}  // namespace
}  // namespace cohort::collective
