#include "cohort/collective/network/gloo_loop.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cohort/collective/network/gloo_mesh.h"

namespace cohort::collective {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two ranks of this process that are connected.
std::array<std::shared_ptr<gloo::Context>, 2> connected_pair() {
  const std::shared_ptr<GroupStore> store = make_memory_store();
  std::array<std::future<std::shared_ptr<gloo::Context>>, 2> forming;
  for (size_t rank = 0; rank < forming.size(); ++rank) {
    forming[rank] = std::async(std::launch::async, [&store, rank] {
      const GroupMember member{
          .rank = static_cast<int>(rank), .tasks = {{"worker", 0}, {"worker", 1}}, .store = store};
      return connect_gloo_mesh(member, "127.0.0.1", 0, seconds(20));
    });
  }
  return {forming[0].get(), forming[1].get()};
}

GlooLoop::Clock::time_point never() { return GlooLoop::kNever; }

void expect_no_failure(int rank, const std::string& how) { ADD_FAILURE() << rank << ": " << how; }

TEST(GlooLoop, StartsWhatItIsGivenInOrder) {
  const auto contexts = connected_pair();
  std::array<std::vector<int>, 2> sent = {{{1, 2, 3}, {4, 5, 6}}};
  std::array<std::vector<int>, 2> received = {{{0, 0, 0}, {0, 0, 0}}};
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
  std::vector<std::unique_ptr<GlooLoop>> loops;
  for (size_t rank = 0; rank < 2; ++rank) {
    std::vector<GlooLoop::Start> starts;
    const int other = rank == 0 ? 1 : 0;
    for (size_t i = 0; i < 3; ++i) {
      for (const bool sends : {true, false}) {
        int* const place = (sends ? sent : received)[rank].data() + i;
        buffers.push_back(contexts[rank]->createUnboundBuffer(place, sizeof(int)));
        starts.push_back({buffers.back().get(), other, i, sends});
      }
    }
    loops.push_back(std::make_unique<GlooLoop>(*contexts[rank], expect_no_failure, never));
    loops.back()->start(starts);
    EXPECT_TRUE(starts.empty());
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_TRUE(i % 2 == 0 ? buffers[i]->waitSend(seconds(20)) : buffers[i]->waitRecv(seconds(20)));
  }
  EXPECT_EQ(received[0], sent[1]);
  EXPECT_EQ(received[1], sent[0]);
}

TEST(GlooLoop, SaysWhatCouldNotBeStarted) {
  const auto contexts = connected_pair();
  std::promise<int> failed;
  GlooLoop loop(
      *contexts[0], [&](int rank, const std::string&) { failed.set_value(rank); }, never);
  contexts[0]->closeConnections();
  int value = 1;
  const auto buffer = contexts[0]->createUnboundBuffer(&value, sizeof value);
  std::vector<GlooLoop::Start> starts = {{buffer.get(), 1, 0, true}};
  loop.start(starts);
  std::future<int> rank = failed.get_future();
  ASSERT_EQ(rank.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(rank.get(), 1);
}

TEST(GlooLoop, CallsAtTheTimesItIsGiven) {
  const auto contexts = connected_pair();
  const auto begin = GlooLoop::Clock::now();
  std::promise<void> called_twice;
  int calls = 0;
  GlooLoop loop(*contexts[0], expect_no_failure, [&] {
    if (++calls < 2) return begin + milliseconds(40);
    called_twice.set_value();
    return GlooLoop::kNever;
  });
  loop.call_at(begin + std::chrono::hours(1));
  loop.call_at(begin + milliseconds(20));
  ASSERT_EQ(called_twice.get_future().wait_for(seconds(20)), std::future_status::ready);
  EXPECT_GE(GlooLoop::Clock::now() - begin, milliseconds(40));
  EXPECT_EQ(calls, 2);
}

TEST(GlooLoop, StartsNothingOnceItHasStopped) {
  const auto contexts = connected_pair();
  GlooLoop loop(*contexts[0], expect_no_failure, never);
  loop.stop();
  contexts[0]->closeConnections();
  int value = 1;
  const auto buffer = contexts[0]->createUnboundBuffer(&value, sizeof value);
  std::vector<GlooLoop::Start> starts = {{buffer.get(), 1, 0, true}};
  loop.start(starts);  // which would fail
  EXPECT_TRUE(starts.empty());
}

}  // namespace
}  // namespace cohort::collective
