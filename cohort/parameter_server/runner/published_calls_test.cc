#include "cohort/parameter_server/runner/published_calls.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cohort/distribute/testing_servers.h"

namespace cohort::internal {
namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

TEST(PublishedCalls, GoWhenAllTasksHaveThemAndTheLastOneIsWaitedFor) {
  distribute::WorkerServers servers(2);
  distribute::Coordination& own = servers.coordination(0);
  const auto has = [&](const char* key) { return own.find(key).has_value(); };
  PublishedCalls calls;
  calls.wait_until_taken(own, steady_clock::now() + 20s);  // there is nothing to wait for
  for (int64_t call = 1; call <= 3; ++call) calls.add(own, call, {.name = "fit"});
  EXPECT_TRUE(has("cohort/calls/1"));
  const auto deadline = steady_clock::now() + 30ms;
  calls.wait_until_taken(own, deadline);
  EXPECT_GE(steady_clock::now(), deadline);

  const auto take = [&](int task, int64_t call) {
    acknowledge(servers.coordination(task), servers.tasks()[static_cast<size_t>(task)], call);
  };
  take(0, 3);
  take(1, 2);
  calls.add(own, 4, {.name = "fit"});
  for (const char* key : {"cohort/calls/1", "cohort/calls/2", "cohort/calls/2/0"}) {
    EXPECT_FALSE(has(key)) << key;
  }
  EXPECT_TRUE(has("cohort/calls/3"));
  EXPECT_TRUE(has("cohort/calls/4"));

  take(0, 4);
  auto last_of_other = std::async(std::launch::async, [&] {
    calls.wait_until_taken(own, steady_clock::now() + 20s);
    return last_taken(own, servers.tasks()[1]);
  });
  take(1, 4);
  EXPECT_EQ(last_of_other.get(), 4);
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
