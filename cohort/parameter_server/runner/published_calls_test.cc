#include "cohort/parameter_server/runner/published_calls.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/distribute/testing_servers.h"
#include "cohort/parameter_server/runner/loop_result.h"

namespace cohort::internal {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

void take(distribute::WorkerServers& servers, int task, int64_t call) {
  acknowledge(servers.coordination(task), servers.tasks()[static_cast<size_t>(task)], call);
}

TEST(PublishedCalls, TheLastOneIsWaitedForAndAllStay) {
  distribute::WorkerServers servers(2);
  distribute::Coordination& own = servers.coordination(0);
  PublishedCalls calls;
  calls.wait_until_taken(own, steady_clock::now() + 20s);  // there is nothing to wait for
  for (int64_t call = 1; call <= 4; ++call) {
    calls.add(own, call, {.name = str("fit ", call)});
    const auto deadline = steady_clock::now() + 10ms;
    calls.wait_until_taken(own, deadline);
    EXPECT_GE(steady_clock::now(), deadline);
    take(servers, 0, call);
    if (call < 4) take(servers, 1, call);
  }
  auto last_of_other = std::async(std::launch::async, [&] {
    calls.wait_until_taken(own, steady_clock::now() + 20s);
    return last_taken(own, servers.tasks()[1]);
  });
  take(servers, 1, 4);
  EXPECT_EQ(last_of_other.get(), 4);
  // One that is started again wants all of them.
  for (int64_t call = 1; call <= 4; ++call) {
    EXPECT_EQ(wait_for_result(servers.server(1), call, [] {}).name, str("fit ", call));
  }
}

TEST(PublishedCalls, LargeValuesGoWhenAllTasksHaveThem) {
  distribute::WorkerServers servers(2);
  distribute::Coordination& own = servers.coordination(0);
  const auto bytes = [&](int64_t call) {
    const LoopResult result = wait_for_result(servers.server(1), call, [] {});
    EXPECT_EQ(result.name, "predict");
    EXPECT_EQ(result.is_left_out, result.value.num_leaves() == 0);
    return result.is_left_out ? 0 : result.value.tensor().numel();
  };
  PublishedCalls calls;
  const auto add = [&](int64_t call, int64_t size) {
    calls.add(own, call, {.name = "predict", .value = Structure(at::zeros({size}, at::kByte))});
  };
  constexpr int64_t kLarge = 600'000;  // has several parts
  add(1, kLarge);
  add(2, 1000);
  take(servers, 0, 2);
  add(3, kLarge);
  EXPECT_EQ(bytes(1), kLarge);
  take(servers, 1, 1);
  add(4, 1);
  EXPECT_EQ(bytes(1), 0);
  EXPECT_EQ(own.list("cohort/calls/1"), std::vector<std::string>{"cohort/calls/1"});
  EXPECT_EQ(bytes(2), 1000);
  EXPECT_EQ(bytes(3), kLarge);
}

// fit throws it in every task.
TEST(PublishedCalls, AnErrorIsThatOfALostPsTaskEverywhere) {
  distribute::WorkerServers servers(2);
  const auto lost =
      rpc::make_error(Code::kUnavailable, "lost it", "/job:ps/task:0", {.cause = Cause::kPsLost});
  publish(servers.coordination(0), 1, {.name = "fit", .error = lost});
  const LoopResult result = wait_for_result(servers.server(1), 1, [] {});
  ASSERT_NE(result.error, nullptr);
  EXPECT_THAT([&] { std::rethrow_exception(result.error); },
              ::testing::ThrowsMessage<distribute::coordinator::PSUnavailableError>("lost it"));
}

TEST(PublishedCalls, OfVeryManyTheOldestGoAndWhoComesToThemIsTold) {
  distribute::WorkerServers servers(2);
  PublishedCalls calls(/*most_kept=*/2);
  for (int64_t call = 1; call <= 4; ++call)
    calls.add(servers.coordination(0), call, {.name = "fit"});
  EXPECT_THAT(
      [&] { wait_for_result(servers.server(1), 2, [] {}); },
      ::testing::ThrowsMessage<UnavailableError>(::testing::AllOf(
          ::testing::HasSubstr("has come to call 2"), ::testing::HasSubstr("keeps call 3"))));
  EXPECT_EQ(wait_for_result(servers.server(1), 3, [] {}).name, "fit");
}

// Any task can write there.
TEST(PublishedCalls, WhatIsNoNumberIsRefused) {
  distribute::WorkerServers servers(2);
  distribute::Coordination& own = servers.coordination(0);
  for (const char* text : {"", "many", "-1", "12a", "99999999999999999999999"}) {
    own.set(str("cohort/calls taken/", servers.tasks()[1]), text);
    EXPECT_THAT([&] { last_taken(own, servers.tasks()[1]); },
                ::testing::ThrowsMessage<DataLossError>(::testing::HasSubstr("calls taken")));
    own.set("cohort/calls/1", str(text, " "));
    EXPECT_THAT([&] { wait_for_result(servers.server(1), 1, [] {}); },
                ::testing::ThrowsMessage<DataLossError>(::testing::HasSubstr("cohort/calls/1")));
    EXPECT_THROW(forget(own, 1), DataLossError);
  }
  own.set("cohort/calls/1", "0");
  EXPECT_THROW(wait_for_result(servers.server(1), 1, [] {}), DataLossError);
  own.set("cohort/calls/1", "1000000 x");
  EXPECT_THROW(wait_for_result(servers.server(1), 1, [] {}), DataLossError);
  own.set("cohort/calls kept from", "soon");
  EXPECT_THAT([&] { wait_for_result(servers.server(1), 1, [] {}); },
              ::testing::ThrowsMessage<DataLossError>(::testing::HasSubstr("kept from")));
}

// Steps reach a task before it has registered, and may be over then.
TEST(PublishedCalls, ATaskThatIsStillToRegisterIsWaitedFor) {
  UniqueFd sockets[] = {rpc::listen_at("127.0.0.1", 0), rpc::listen_at("127.0.0.1", 0)};
  std::vector<std::string> addresses;
  for (const UniqueFd& socket : sockets) {
    addresses.push_back("127.0.0.1:" + std::to_string(rpc::listening_address(socket.get()).port));
  }
  const train::ClusterSpec spec({{"worker", addresses}});
  const auto start = [&](int task) {
    return std::make_unique<distribute::Server>(
        spec, distribute::ServerOptions{.job_name = "worker",
                                        .task_index = task,
                                        .listen_fd = sockets[task].release(),
                                        .start_timeout = 20s});
  };
  const auto first = start(0);
  PublishedCalls calls;
  calls.add(first->coordination(), 1, {.name = "fit"});
  acknowledge(first->coordination(), {"worker", 0}, 1);
  auto second = std::async(std::launch::async, [&] {
    auto server = start(1);
    server->coordination().wait_for_start();
    acknowledge(server->coordination(), {"worker", 1}, 1);
    return server;
  });
  calls.wait_until_taken(first->coordination(), steady_clock::now() + 20s);
  EXPECT_EQ(last_taken(first->coordination(), {"worker", 1}), 1);
  second.get().reset();
}

}  // namespace
}  // namespace cohort::internal
