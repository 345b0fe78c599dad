// Several servers of one process, real sockets between them.
#include "cohort/cluster/coordination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/server.h"
#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::distribute {
namespace {

using namespace std::chrono_literals;
using internal::rpc::listen_at;
using internal::rpc::listening_address;
using ::testing::HasSubstr;

struct CoordinationTest : ::testing::Test {
  CoordinationTest() {
    std::vector<std::string> addresses;
    for (int i = 0; i < 3; ++i) {
      sockets.push_back(listen_at("127.0.0.1", 0));
      addresses.push_back("127.0.0.1:" +
                          std::to_string(listening_address(sockets.back().get()).port));
    }
    spec = train::ClusterSpec({{"worker", addresses}});
  }

  Server make(int worker) {
    return Server(spec, {.job_name = "worker",
                         .task_index = worker,
                         .listen_fd = sockets[static_cast<size_t>(worker)].release(),
                         .start_timeout = 20s,
                         .heartbeat_interval = 500ms,
                         .heartbeat_timeout = 2s});
  }

  std::vector<internal::UniqueFd> sockets;
  train::ClusterSpec spec;
};

TEST_F(CoordinationTest, TasksFindEachOtherAndExchangeValues) {
  Server servers[] = {make(0), make(1), make(2)};
  for (Server& server : servers) {
    const ClusterView view = server.coordination().wait_for_start();
    ASSERT_EQ(view.tasks.size(), 3u);
    for (const ClusterTask& task : view.tasks) EXPECT_EQ(task.status, TaskStatus::kAlive);
  }
  auto waits =
      std::async(std::launch::async, [&] { return servers[2].coordination().get("seed", 20s); });
  servers[1].coordination().set("seed", "42");
  EXPECT_EQ(waits.get(), "42");
  EXPECT_EQ(servers[0].coordination().add("counter", 2), 2);
  EXPECT_EQ(servers[1].coordination().add("counter", 3), 5);
  EXPECT_FALSE(servers[2].coordination().compare_and_set("seed", "41", "43"));
  EXPECT_TRUE(servers[2].coordination().compare_and_set("seed", "42", "43"));
  EXPECT_EQ(servers[0].coordination().find("seed"), "43");
  EXPECT_EQ(servers[0].coordination().list("s"), std::vector<std::string>{"seed"});
  EXPECT_TRUE(servers[0].coordination().remove("seed"));
  EXPECT_EQ(servers[1].coordination().find("seed"), std::nullopt);

  std::vector<std::future<void>> barriers;
  for (Server& server : servers) {
    barriers.push_back(std::async(std::launch::async,
                                  [&] { server.coordination().barrier("end", {.timeout = 20s}); }));
  }
  for (auto& barrier : barriers) barrier.get();
}

TEST_F(CoordinationTest, TimeoutsMayBeAsLongAsTheyGo) {
  constexpr std::chrono::milliseconds kForEver = std::chrono::milliseconds::max();
  const train::ClusterSpec alone({{"worker", {spec.task_address("worker", 0)}}});
  Server server(alone, {.job_name = "worker",
                        .listen_fd = sockets[0].release(),
                        .keepalive_time = kForEver,
                        .keepalive_timeout = kForEver,
                        .start_timeout = kForEver,
                        .heartbeat_timeout = kForEver,
                        .ps_lease = kForEver});
  Coordination& cluster = server.coordination();
  cluster.wait_for_start();
  cluster.set("seed", "42");
  EXPECT_EQ(cluster.get("seed", kForEver), "42");
  cluster.barrier("end", {.timeout = kForEver});
}

TEST_F(CoordinationTest, WhoLeavesIsNamedToWhoWaitsForIt) {
  Server zero = make(0);
  Server one = make(1);
  std::optional<Server> two(make(2));
  for (Server* server : {&zero, &one, &*two}) server->coordination().wait_for_start();
  auto barrier = std::async(std::launch::async, [&] {
    one.coordination().barrier("step", {.tasks = {{"worker", 1}, {"worker", 2}}, .timeout = 20s});
  });
  two.reset();
  try {
    barrier.get();
    ADD_FAILURE() << "a barrier without worker 2";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:2"));
  }
}

TEST_F(CoordinationTest, AnErrorOfOneTaskReachesTheOthers) {
  Server servers[] = {make(0), make(1), make(2)};
  for (Server& server : servers) server.coordination().wait_for_start();
  servers[1].coordination().report(
      internal::make_error(Code::kDataLoss, "shard 7 is corrupt", "/job:worker/task:1"));
  std::promise<internal::ErrorRecord> heard;
  servers[2].coordination().on_error(
      [&](std::exception_ptr error) { heard.set_value(internal::record_error(error)); });
  const internal::ErrorRecord error = heard.get_future().get();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_THAT(error.message, HasSubstr("shard 7 is corrupt"));
}

TEST_F(CoordinationTest, TheStartNamesWhoIsMissing) {
  Server zero(spec, {.job_name = "worker",
                     .task_index = 0,
                     .listen_fd = sockets[0].release(),
                     .start_timeout = 200ms});
  Server one = make(1);
  try {
    one.coordination().wait_for_start();
    ADD_FAILURE() << "a start without worker 2";
  } catch (const DeadlineExceededError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:2"));
  }
  EXPECT_THROW(one.join(), DeadlineExceededError);
}

}  // namespace
}  // namespace cohort::distribute
