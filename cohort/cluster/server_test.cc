// How tasks of a cluster in this process reach each other.
#include "cohort/cluster/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cohort/cluster/server_core.h"
#include "cohort/cluster/testing_sockets.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute {
namespace {

using internal::expect_error;
using std::chrono::seconds;

constexpr internal::rpc::CallOptions kCall{.timeout = seconds(20)};

struct Cluster {
  Sockets sockets{3};
  train::ClusterSpec spec{
      {{"worker", {sockets.addresses[0], sockets.addresses[1]}}, {"ps", {sockets.addresses[2]}}}};
  Server worker0{
      spec, {.job_name = "worker", .task_index = 0, .listen_fd = sockets.sockets[0].release()}};
  Server worker1{
      spec, {.job_name = "worker", .task_index = 1, .listen_fd = sockets.sockets[1].release()}};
  Server ps{spec, {.job_name = "ps", .task_index = 0, .listen_fd = sockets.sockets[2].release()}};
};

TEST(Server, WhatIsAttachedToItMayEndMeanwhile) {
  struct Owner {
    std::shared_ptr<void> attachment;
  };
  auto owner = std::make_shared<Owner>();
  const std::weak_ptr<Owner> lives = owner;
  int attached = 0;
  owner->attachment = internal::attach_to_servers(owner, [&](internal::ServerCore&) {
    ++attached;
    owner.reset();  // as its user may on another thread
    EXPECT_FALSE(lives.expired());
  });
  Cluster cluster;
  EXPECT_EQ(attached, 1);
  EXPECT_TRUE(lives.expired());
}

TEST(Server, SeveralOfOneProcessReachEachOther) {
  Cluster cluster;
  EXPECT_EQ(cluster.ps.target(), "grpc://" + cluster.sockets.addresses[2]);
  EXPECT_EQ(cluster.ps.task(), (TaskId{"ps", 0}));
  const auto channel = cluster.worker0.core().channel({"ps", 0});
  EXPECT_THAT(channel->call("server/who", {}, kCall).control,
              ::testing::StartsWith("/job:ps/task:0 "));
  EXPECT_EQ(channel, cluster.worker0.core().channel({"ps", 0}));
  expect_error<FailedPreconditionError>(
      [&] {
        cluster.worker0.core().channel({"ps", 1});
      },
      "no address of /job:ps/task:1 is known");
}

TEST(Server, AReconnectMayTakeLongerOverANetwork) {
  const auto grace_of = [](const std::string& address, const ServerOptions& options) {
    return internal::heartbeat_of(
               train::ClusterSpec({{"worker", {"127.0.0.1:1", "localhost:2", address}}}), options)
        .reconnect_grace;
  };
  using std::chrono::milliseconds;
  EXPECT_EQ(grace_of("[::1]:3", {}), milliseconds(30));
  EXPECT_EQ(grace_of("10.0.0.1:3", {}), milliseconds(300));
  EXPECT_EQ(grace_of("10.0.0.1:3", {.reconnect_grace = milliseconds(70)}), milliseconds(70));
  EXPECT_EQ(grace_of("10.0.0.1:3", {.heartbeat_timeout = milliseconds(200)}), milliseconds(200));
}

// As torchrun and mpirun know a cluster.
class RendezvousResolver : public cluster_resolver::ClusterResolver {
 public:
  explicit RendezvousResolver(cluster_resolver::Rendezvous rendezvous)
      : rendezvous_(std::move(rendezvous)) {}
  train::ClusterSpec cluster_spec() const override { return {}; }
  std::optional<cluster_resolver::Rendezvous> rendezvous() const override { return rendezvous_; }
  std::string source() const override { return "the test"; }

 private:
  const cluster_resolver::Rendezvous rendezvous_;
};

// A method that only tasks of the same generation may call.
class FencedService : public internal::rpc::Service {
 public:
  std::string_view name() const override { return "fenced"; }
  std::span<const internal::rpc::MethodSpec> methods() const override { return kMethods; }
  void handle(size_t, std::unique_ptr<internal::rpc::Call> call) override {
    call->reply({.control = to_string(call->caller().task)});
  }

 private:
  static constexpr internal::rpc::MethodSpec kMethods[] = {
      {.name = "who", .callers = internal::rpc::kEveryTask}};
};

// The answer, once the other one has the news as well.
std::string ask(internal::rpc::Channel& channel) {
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  for (;;) {
    try {
      return channel.call("fenced/who", {}, kCall).control;
    } catch (const UnavailableError& error) {
      const bool is_behind = std::string(error.what()).find("is behind") != std::string::npos;
      if (!is_behind || std::chrono::steady_clock::now() > end) throw;
    }
  }
}

TEST(Server, TasksWithARendezvousFindEachOther) {
  Sockets sockets(1);
  const std::string address = sockets.addresses[0];
  ServerOptions everywhere{.bind_address = "0.0.0.0"};
  everywhere.credentials.insecure = true;
  std::promise<void> all_done;
  const std::shared_future<void> end = all_done.get_future().share();
  std::atomic<int> done{0};
  std::vector<std::future<void>> tasks;
  for (int rank = 0; rank < 3; ++rank) {
    ServerOptions options = rank == 0 ? ServerOptions{} : everywhere;
    if (rank == 0) options.listen_fd = sockets.sockets[0].release();
    if (rank == 1) options.bind_address = "";
    tasks.push_back(std::async(std::launch::async, [&, rank, options] {
      Server server(RendezvousResolver({.address = address, .rank = rank, .size = 3}), options);
      server.core().add(std::make_shared<FencedService>());
      const auto coordinator = server.core().channel({"worker", 0});
      EXPECT_EQ(server.coordination().wait_for_start().generation, 1);
      server.coordination().barrier("all have their services");
      // At once, without waiting for anything more.
      EXPECT_EQ(server.cluster_spec().tasks().size(), 3U);
      EXPECT_EQ(server.cluster_spec().task_address("worker", 0), address);
      EXPECT_THAT(server.cluster_spec().task_address("worker", 2),
                  ::testing::StartsWith("127.0.0.1:"));
      for (int other = 0; other < 3; ++other) {
        EXPECT_EQ(ask(*server.core().channel({"worker", other})),
                  "/job:worker/task:" + std::to_string(rank));
      }
      EXPECT_EQ(server.core().channel({"worker", 0}), coordinator);
      if (++done == 3) all_done.set_value();
      EXPECT_EQ(end.wait_for(seconds(60)), std::future_status::ready);
    }));
  }
  for (auto& task : tasks) task.get();
}

}  // namespace
}  // namespace cohort::distribute
