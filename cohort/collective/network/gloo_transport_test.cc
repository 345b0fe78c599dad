#include "cohort/collective/network/gloo_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/collective/network/rpc_transport.h"
#include "cohort/collective/network/testing_servers.h"
#include "cohort/collective/network/testing_stranger.h"
#include "cohort/collective/network/transport_communicator.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::collective {
namespace {

using internal::expect_error;
using std::chrono::seconds;

std::shared_ptr<Communicator> make_over_gloo(const GroupMember& member,
                                             internal::ServerCore& server) {
  return make_transport_communicator(
      member, make_gloo_transport(member, "127.0.0.1", make_rpc_transport(member, server)));
}

// Every task's all_reduce of its rank + 1.
void expect_sum(const std::vector<std::shared_ptr<Communicator>>& members) {
  std::vector<std::future<float>> sums;
  for (const auto& member : members) {
    sums.push_back(std::async(std::launch::async, [&member] {
      auto value = static_cast<float>(member->rank() + 1);
      all_reduce(*member, {&value, 1, float32}, {.name = "sum", .timeout = seconds(20)});
      return value;
    }));
  }
  const auto size = static_cast<float>(members.size());
  for (auto& sum : sums) EXPECT_EQ(sum.get(), size * (size + 1) / 2);
}

// Some frames of its own kind end a process: NetworkProcesses.AStrangersFrameEndsATaskWhichIsNamed.
TEST(GlooTransport, AStrangerThatConnectsSpoilsNothing) {
  const auto form_beside = [](const std::string& words) {
    const auto store = std::make_shared<StoreWithAStranger>(make_memory_store(), words);
    // The attempt that the stranger spoils takes a quarter of it.
    const auto deadline = std::chrono::steady_clock::now() + seconds(12);
    auto members = make_server_group(2, 0, [&](GroupMember member, internal::ServerCore& server) {
      member.store = store;
      member.deadline = deadline;
      return make_over_gloo(member, server);
    });
    EXPECT_GT(store->visits(), 0);
    expect_sum(members);
  };
  auto other = std::async(std::launch::async, form_beside, "GET / HTTP/1.1\r\n\r\n");
  form_beside(std::string(4096, '\xff'));
  other.get();
}

// Threads and descriptors of this process.
std::pair<int64_t, int64_t> resources() {
  const auto count = [](const char* folder) {
    const std::filesystem::directory_iterator entries(folder);
    return static_cast<int64_t>(std::distance(begin(entries), end(entries)));
  };
  return {count("/proc/self/task"), count("/proc/self/fd")};
}

TEST(GlooTransport, GroupsThatFormAgainLeaveNothingBehind) {
  TestingServers servers(2);
  std::pair<int64_t, int64_t> before;
  for (int64_t generation = 0; generation < 12; ++generation) {
    auto members = make_group(2, generation, [&](const GroupMember& member) {
      return make_over_gloo(member, servers.core(member.rank));
    });
    expect_sum(members);
    members[1]->abort(std::make_exception_ptr(AbortedError("once more")));
    expect_error<AbortedError>([&] { members[0]->barrier({.name = "after"}); }, "once more");
    members.clear();
    if (generation == 1) before = resources();  // gRPC and Gloo have made their lasting ones
  }
  const auto after = resources();
  // gRPC's own come and go; one left behind each time would be ten.
  EXPECT_LE(after.first, before.first + 4);
  EXPECT_LE(after.second, before.second + 4);
}

TEST(GlooTransport, ALostTaskIsNamedAndEndsAllWaits) {
  TestingServers servers(3);
  auto members = make_group(3, 0, [&](const GroupMember& member) {
    return make_over_gloo(member, servers.core(member.rank));
  });
  expect_sum(members);
  auto first = std::async(std::launch::async, [&] { members[0]->barrier({.name = "wait"}); });
  auto second = std::async(std::launch::async, [&] { members[1]->barrier({.name = "wait"}); });
  members[2].reset();
  for (auto* future : {&first, &second}) {
    ASSERT_EQ(future->wait_for(seconds(10)), std::future_status::ready);
    expect_error<UnavailableError>([&] { future->get(); }, "/job:worker/task:2");
  }
}

// As if another thread had given the group its error, and come no further than to wake this task.
class EndThatTakesLong final : public Transport {
 public:
  explicit EndThatTakesLong(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}

  char* memory(size_t bytes) override { return transport_->memory(bytes); }
  void send(int to, const void* data, size_t bytes) override { transport_->send(to, data, bytes); }
  void expect(int from, void* into, size_t bytes) override {
    transport_->expect(from, into, bytes);
  }
  const void* receive(int from, Deadline deadline) override {
    return transport_->receive(from, deadline);
  }
  bool is_late(int from) override { return transport_->is_late(from); }
  int finish(Deadline deadline) override { return transport_->finish(deadline); }
  void fail(const std::exception_ptr&) noexcept override {}
  void check() override { transport_->check(); }
  void on_end(std::function<void()>) override {}

 private:
  const std::unique_ptr<Transport> transport_;
};

// Of two tasks, of which neither does anything.
std::vector<std::unique_ptr<Transport>> transports_of(TestingServers& servers, int64_t generation) {
  std::vector<std::unique_ptr<Transport>> transports(2);
  make_group(2, generation, [&](const GroupMember& member) {
    transports[static_cast<size_t>(member.rank)] = make_gloo_transport(
        member, "127.0.0.1", make_rpc_transport(member, servers.core(member.rank)));
    return std::shared_ptr<Communicator>();
  });
  return transports;
}

// Whose deadlines pass at about the time when Gloo's thread has much to start.
TEST(GlooTransport, AWaitEndsAtItsDeadlineWhateverIsBeingStarted) {
  constexpr size_t kMany = 2000;
  TestingServers servers(2);
  for (int64_t attempt = 0; attempt < 4; ++attempt) {
    auto transports = transports_of(servers, attempt);
    std::vector<char> memory(kMany * 1000);
    auto waits = std::async(std::launch::async, [&] {
      for (size_t i = 0; i < kMany; ++i) {
        transports[0]->expect(1, memory.data() + i * 1000, 1000);
        transports[0]->send(1, memory.data() + i * 1000, 1000);
      }
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(attempt);
      EXPECT_EQ(transports[0]->receive(1, deadline), nullptr);
      EXPECT_GE(std::chrono::steady_clock::now(), deadline);
      transports[0]->fail(std::make_exception_ptr(AbortedError("it is too late")));
    });
    ASSERT_EQ(waits.wait_for(seconds(20)), std::future_status::ready);
    waits.get();
    expect_error<AbortedError>([&] { transports[0]->check(); }, "it is too late");
  }
}

TEST(GlooTransport, NothingIsWrittenToACallersMemoryOnceItsCallHasThrown) {
  TestingServers servers(2);
  std::vector<std::unique_ptr<Transport>> transports(2);
  make_group(2, 0, [&](const GroupMember& member) {
    auto control = make_rpc_transport(member, servers.core(member.rank));
    if (member.rank == 0) control = std::make_unique<EndThatTakesLong>(std::move(control));
    transports[static_cast<size_t>(member.rank)] =
        make_gloo_transport(member, "127.0.0.1", std::move(control));
    return std::shared_ptr<Communicator>();
  });
  std::vector<char> into(1000, 'a');
  const std::vector<char> sent(1000, 'b');
  transports[0]->expect(1, into.data(), into.size());
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  EXPECT_EQ(transports[0]->finish(deadline), -1);  // Gloo knows now what is expected
  transports[0]->fail(std::make_exception_ptr(DataLossError("its file is damaged")));

  transports[1]->send(0, sent.data(), sent.size());
  expect_error<UnavailableError>([&] { transports[1]->finish(deadline); }, "over Gloo broke");
  transports.clear();
  EXPECT_EQ(into, std::vector<char>(1000, 'a'));
}

}  // namespace
}  // namespace cohort::collective
