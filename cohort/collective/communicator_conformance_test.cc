// What every backend must do; one suite over all of them, bare and checked.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "cohort/collective/gathered_bytes.h"
#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(CommunicatorConformance, KnowsItsPlace) {
  const Communicators members = make(3, 7);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(members[static_cast<size_t>(rank)]->rank(), rank);
    EXPECT_EQ(members[static_cast<size_t>(rank)]->size(), 3);
    EXPECT_EQ(members[static_cast<size_t>(rank)]->generation(), 7);
  }
}

TEST_P(CommunicatorConformance, AllReduceAddsUpInTheOrderOfRanks) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{100'000}}) {
    // (1e8 + 1) - 1e8 is 0 in float32, in another order 1.
    expect_none(run_tasks(make(3), [&](Communicator& member) {
      const float each[] = {1e8f, 1.0f, -1e8f};
      std::vector<float> values(count, each[member.rank()]);
      all_reduce(member, buffer_over(values, float32), {.name = "sum"});
      for (const float value : values) ASSERT_EQ(value, (1e8f + 1.0f) - 1e8f);
    }));
  }
}

TEST_P(CommunicatorConformance, LargeValuesFromEitherMemory) {
  constexpr size_t kCount = 1'600'017;  // parts of 3 MB
  expect_none(run_tasks(make(2), [&](Communicator& member) {
    std::vector<float> mine(kCount);
    Buffer own = member.buffer(static_cast<int64_t>(kCount * sizeof(float)));
    own.count = static_cast<int64_t>(kCount);
    own.dtype = float32;
    for (const Buffer& buffer : {buffer_over(mine, float32), own}) {
      auto* values = static_cast<float*>(buffer.data);
      for (int round = 1; round <= 2; ++round) {
        std::iota(values, values + kCount, static_cast<float>(member.rank() * round));
        all_reduce(member, buffer, {.name = "large"});
        int64_t wrong = 0;
        for (size_t i = 0; i < kCount; ++i) wrong += values[i] != static_cast<float>(2 * i + round);
        ASSERT_EQ(wrong, 0);
      }
      values[kCount - 1] = static_cast<float>(member.rank());
      broadcast(member, buffer, 1, {.name = "hand out"});
      ASSERT_EQ(values[kCount - 1], 1.0f);
    }
  }));
}

TEST_P(CommunicatorConformance, AllReduceOfIntegersAndDoubles) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    std::vector<int64_t> longs{member.rank() + 1, int64_t{1} << 40};
    all_reduce(member, buffer_over(longs, int64), {.name = "longs"});
    EXPECT_THAT(longs, ElementsAre(3, int64_t{1} << 41));
    std::vector<double> doubles{0.1, 0.5};
    all_reduce(member, buffer_over(doubles, float64), {.name = "doubles"});
    EXPECT_THAT(doubles, ElementsAre(0.2, 1.0));
  }));
}

TEST_P(CommunicatorConformance, ATaskBringsOneBufferForEachLocalReplica) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    std::vector<float> first{1, 2}, second{10, 20};
    const Buffer both[] = {buffer_over(first, float32), buffer_over(second, float32)};
    member.all_reduce(both, {.name = "both"})->wait(Deadline::max());
    EXPECT_THAT(first, ElementsAre(22, 44));
    EXPECT_THAT(second, ElementsAre(22, 44));
    second = {7, static_cast<float>(member.rank())};
    first = {static_cast<float>(member.rank()), 8};
    member.broadcast(both, 1, {.name = "hand out"})->wait(Deadline::max());
    EXPECT_THAT(first, ElementsAre(1, 8));
    EXPECT_THAT(second, ElementsAre(1, 8));
  }));
}

TEST_P(CommunicatorConformance, ScatterAndGatherOfUnequalParts) {
  const std::vector<int64_t> counts{1, 0, 3};
  expect_none(run_tasks(make(3), [&](Communicator& member) {
    std::vector<int32_t> values{1, 2, 3, 4};
    for (int32_t& value : values) value *= member.rank() + 1;
    member.reduce_scatter(std::vector<Buffer>{buffer_over(values, int32)}, counts, {.name = "rs"})
        ->wait(Deadline::max());
    if (member.rank() == 0) {
      EXPECT_EQ(values[0], 6);
    }
    if (member.rank() == 2) {
      EXPECT_THAT(std::vector(values.begin() + 1, values.end()), ElementsAre(12, 18, 24));
    }
    all_gather(member, buffer_over(values, int32), counts, {.name = "ag"});
    EXPECT_THAT(values, ElementsAre(6, 12, 18, 24));
  }));
}

// As many bytes as `round` and the task say, in `memory`.
std::span<const char> bytes_of(int rank, int round, char* memory) {
  const size_t sizes[] = {0, 1, 70'000, 700'001, 0};
  const size_t size = sizes[static_cast<size_t>(rank + round) % std::size(sizes)];
  std::fill_n(memory, size, static_cast<char>(10 * round + rank));
  return {memory, size};
}

TEST_P(CommunicatorConformance, GathersAnyNumberOfBytesFromEachTask) {
  constexpr int kTasks = 3, kRounds = 8;
  constexpr size_t kMost = 700'001;
  for (const bool in_own_memory : {false, true}) {
    expect_none(run_tasks(make(kTasks), [&](Communicator& member) {
      BufferPool pool(member);
      GatheredBytes all(pool);
      std::vector<char> expected(kMost), other(2 * kMost);
      const BufferPool::Piece own[] = {pool.take(kMost), pool.take(kMost)};
      for (int round = 0; round < kRounds; ++round) {
        const auto turn = static_cast<size_t>(round % 2);
        char* const place = in_own_memory ? own[turn].data() : other.data() + turn * kMost;
        member.gather_bytes(bytes_of(member.rank(), round, place), all, {.name = "rows"});
        for (int rank = 0; rank < kTasks; ++rank) {
          ASSERT_TRUE(std::ranges::equal(all.of(rank), bytes_of(rank, round, expected.data())))
              << "of task " << rank << " in round " << round;
        }
      }
    }));
  }
}

// A task that is late may read what the others have brought while they are in other calls.
TEST_P(CommunicatorConformance, GatheredBytesStayUntilTheNextAreGathered) {
  expect_none(run_tasks(make(2), [&](Communicator& member) {
    BufferPool pool(member);
    GatheredBytes all(pool);
    std::vector<char> memory[2] = {std::vector<char>(50'000), std::vector<char>(50'000)};
    for (int round = 0; round < 20; ++round) {
      std::vector<char>& mine = memory[round % 2];
      std::fill(mine.begin(), mine.end(), static_cast<char>(2 * round + member.rank()));
      member.gather_bytes(mine, all, {.name = "rows"});
      std::vector<float> values(round % 2 == 0 ? 3 : 30'000, 1.0f);
      all_reduce(member, buffer_over(values, float32), {.name = "between"});
      for (int rank = 0; rank < 2; ++rank) {
        const auto expected = static_cast<char>(2 * round + rank);
        ASSERT_EQ(std::ranges::count(all.of(rank), expected), 50'000) << "of task " << rank;
      }
    }
  }));
}

TEST_P(CommunicatorConformance, ItsOwnMemoryWorksLikeAnyOther) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    Buffer own = member.buffer(64);
    own.dtype = float32;
    own.count = 16;
    std::fill_n(static_cast<float*>(own.data), 16, 1.5f);
    all_reduce(member, own, {.name = "own"});
    EXPECT_EQ(static_cast<float*>(own.data)[15], 3.0f);
  }));
}

TEST_P(CommunicatorConformance, NobodyPassesABarrierAlone) {
  std::atomic<int> before{0};
  expect_none(run_tasks(make(4), [&](Communicator& member) {
    for (int i = 1; i <= 10; ++i) {
      ++before;
      member.barrier({.name = "round"});
      EXPECT_GE(before.load(), 4 * i);
      member.barrier({.name = "checked"});
    }
  }));
}

TEST_P(CommunicatorConformance, ATaskThatDoesNotComeIsNamedAtTheDeadline) {
  const Communicators members = make(2);
  const auto errors = run_tasks(members, [&](Communicator& member) {
    if (member.rank() == 1) return;
    std::vector<float> values{1};
    all_reduce(member, buffer_over(values, float32),
               {.name = "losses", .timeout = milliseconds(30)});
  });
  EXPECT_THAT(message_of<DeadlineExceededError>(errors[0]), HasSubstr(members[0]->task_name(1)));
  // No further call gets through, on either side.
  const auto later = run_tasks(members, [](Communicator& member) {
    member.barrier({.name = "later", .timeout = milliseconds(500)});
  });
  for (const auto& error : later) EXPECT_NE(error, nullptr);
}

TEST_P(CommunicatorConformance, ATimeoutMayBeAsLongAsItGoes) {
  expect_none(run_tasks(make(2), [](Communicator& member) {
    const CallOptions for_ever{.name = "sum", .timeout = std::chrono::nanoseconds::max()};
    for (int round = 0; round < 10; ++round) {
      std::vector<float> values{1};
      all_reduce(member, buffer_over(values, float32), for_ever);
      EXPECT_THAT(values, ElementsAre(2));
      member.barrier(for_ever);
    }
  }));
}

TEST_P(CommunicatorConformance, AbortWakesThoseWhoWaitAndSaysWhy) {
  const Communicators members = make(3);
  const auto errors = run_tasks(members, [&](Communicator& member) {
    if (member.rank() == 2) {
      return member.abort(std::make_exception_ptr(ResourceExhaustedError("its disk is full")));
    }
    member.barrier({.name = "wait"});
  });
  EXPECT_EQ(errors[2], nullptr);
  for (const int rank : {0, 1}) {
    EXPECT_THAT(message_of<ResourceExhaustedError>(errors[static_cast<size_t>(rank)]),
                HasSubstr(members[0]->task_name(2) + " has given up: its disk is full"));
  }
  EXPECT_THAT(message_of<ResourceExhaustedError>(run_tasks(
                  members, [](Communicator& member) { member.barrier({.name = "later"}); })[1]),
              HasSubstr("its disk is full"));
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorConformance, ::testing::ValuesIn(all_backends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cohort::collective
