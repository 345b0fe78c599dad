#include "cohort/collective/network/transport_communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "cohort/collective/checked_communicator.h"
#include "cohort/collective/network/testing_counting_transport.h"
#include "cohort/collective/testing_conformance.h"

namespace cohort::collective {
namespace {

constexpr int kTasks = 3;

// How many messages each task sends for a call that is checked; the mean.
int messages_of(const std::function<void(Communicator&)>& call) {
  std::vector<Sent> sent(kTasks);
  const Communicators members =
      make_server_group(kTasks, 0, [&](const GroupMember& member, internal::ServerCore& server) {
        return checked(make_transport_communicator(
            member, std::make_unique<CountingTransport>(make_rpc_transport(member, server),
                                                        sent[member.rank])));
      });
  expect_none(run_tasks(members, call));
  int64_t messages = 0;
  for (const Sent& one : sent) messages += one.messages;
  return static_cast<int>(messages / kTasks);
}

int messages_of_sum(int64_t count) {
  return messages_of([count](Communicator& member) {
    std::vector<float> values(static_cast<size_t>(count), 1);
    all_reduce(member, buffer_over(values, float32), {.name = "x"});
    EXPECT_EQ(values, std::vector<float>(values.size(), kTasks));
  });
}

TEST(TransportCommunicator, FewValuesTravelWithTheirCheck) {
  EXPECT_EQ(messages_of_sum(1), kTasks - 1);
  EXPECT_EQ(messages_of_sum(16), kTasks - 1);
  EXPECT_EQ(messages_of_sum(17), 2 * (kTasks - 1));
  EXPECT_EQ(messages_of([](Communicator& member) { member.barrier({.name = "x"}); }), kTasks - 1);
}

TEST(TransportCommunicator, OfAGatherEachTasksPartCounts) {
  const auto gather = [](int64_t of_last) {
    return messages_of([of_last](Communicator& member) {
      const std::vector<int64_t> counts = {16, 0, of_last};
      std::vector<float> values(static_cast<size_t>(16 + of_last), -1);
      const int rank = member.rank();
      for (int64_t i = 0; i < counts[static_cast<size_t>(rank)]; ++i) {
        values[static_cast<size_t>(i + (rank == 2 ? 16 : 0))] = static_cast<float>(rank);
      }
      all_gather(member, buffer_over(values, float32), counts, {.name = "x"});
      EXPECT_EQ(std::count(values.begin(), values.begin() + 16, 0), 16);
      EXPECT_EQ(std::count(values.begin() + 16, values.end(), 2), of_last);
    });
  };
  EXPECT_EQ(gather(16), kTasks - 1);
  EXPECT_GT(gather(17), kTasks - 1);
}

}  // namespace
}  // namespace cohort::collective
