// Clusters of one process, real sockets, with and without certificates.
#include "cohort/cluster/status_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "cohort/cluster/membership/prometheus_text.h"
#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using distribute::Server;
using membership::TaskState;
using rpc::listen_at;
using rpc::listening_address;
using security::Security;
using ::testing::HasSubstr;

constexpr auto kTimeout = 20s;
const TaskId kPerson{"operator", 0};

struct StatusClientTest : ::testing::Test {
  StatusClientTest() {
    std::vector<std::string> addresses;
    for (int i = 0; i < 2; ++i) {
      sockets.push_back(listen_at("127.0.0.1", 0));
      addresses.push_back("127.0.0.1:" +
                          std::to_string(listening_address(sockets.back().get()).port));
    }
    spec = train::ClusterSpec({{"worker", addresses}});
    std::string pattern = ::testing::TempDir() + "cohort_status_client_test.XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~StatusClientTest() override { std::filesystem::remove_all(root); }

  Server make(int worker, const distribute::Credentials& credentials = {}) {
    return Server(spec, {.job_name = "worker",
                         .task_index = worker,
                         .credentials = credentials,
                         .listen_fd = sockets[static_cast<size_t>(worker)].release(),
                         .start_timeout = 20s,
                         .heartbeat_interval = 20ms,
                         .heartbeat_timeout = 10s});
  }
  // In `root`, for both workers and a person; returns the directory.
  std::string make_certificates(const std::string& cluster) const {
    const std::string directory = root + "/" + cluster;
    security::make_certificates(
        {.cluster = cluster, .tasks = {{"worker", 0}, {"worker", 1}}, .directory = directory});
    return directory;
  }
  static std::shared_ptr<const Security> person(const std::string& directory) {
    return Security::load(security::credentials_in(directory, kPerson), kPerson);
  }

  const std::shared_ptr<const Security> nothing = Security::load({}, std::nullopt);
  std::vector<UniqueFd> sockets;
  train::ClusterSpec spec;
  std::string root;
};

TEST_F(StatusClientTest, AsksTheCoordinatingTaskWhicheverItIsGiven) {
  Server servers[] = {make(0), make(1)};
  for (Server& server : servers) server.coordination().wait_for_start();
  for (const Server& server : servers) {
    for (const std::string& address : {server.address(), server.target()}) {
      const membership::ClusterStatus status = StatusClient(address, nothing, kTimeout).status();
      EXPECT_EQ(status.coordinator, (TaskId{"worker", 0}));
      EXPECT_EQ(status.address, servers[0].address());
      ASSERT_EQ(status.view.members.size(), 2u);
      for (const membership::Member& member : status.view.members) {
        EXPECT_EQ(member.state, TaskState::kAlive);
        EXPECT_TRUE(member.state_age && member.silence);
      }
      EXPECT_TRUE(is_well(status.view));
    }
  }
}

TEST_F(StatusClientTest, FiguresArriveWithHeartbeats) {
  Server servers[] = {make(0), make(1)};
  for (Server& server : servers) server.coordination().wait_for_start();
  servers[1].coordination().set_figure("steps/s", 12.5);
  StatusClient client(servers[0].address(), nothing, kTimeout);
  const auto figures = [&] { return client.status().view.members.at(1).figures; };
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  while (figures().empty()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
  EXPECT_EQ(figures(), (membership::Figures{{"steps/s", 12.5}}));
  // A task that does not coordinate knows its own.
  const membership::View view = servers[1].core().membership().status();
  EXPECT_THAT(membership::prometheus_text(view),
              HasSubstr("cohort_task_figure{job=\"worker\",index=\"1\",name=\"steps/s\"} 12.5\n"));
  servers[1].coordination().drop_figure("steps/s");
  while (!figures().empty()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST_F(StatusClientTest, ShowsWhoIsAwaitedAndWhoHasLeft) {
  Server first = make(0);
  StatusClient client(first.address(), nothing, kTimeout);
  const auto second_state = [&] { return client.status().view.members.at(1).state; };
  EXPECT_EQ(second_state(), TaskState::kAwaited);
  EXPECT_FALSE(is_well(client.status().view));
  {
    Server second = make(1);
    first.coordination().wait_for_start();
    second.coordination().wait_for_start();
    EXPECT_EQ(second_state(), TaskState::kAlive);
  }
  EXPECT_EQ(second_state(), TaskState::kLeft);
}

TEST_F(StatusClientTest, ProvesWhoAsksByAnOperatorsCertificate) {
  const std::string mine = make_certificates("mine");
  const std::string other = make_certificates("other");
  const auto task = [&](int index) { return security::credentials_in(mine, {"worker", index}); };
  Server servers[] = {make(0, task(0)), make(1, task(1))};
  for (Server& server : servers) server.coordination().wait_for_start();
  StatusClient client(servers[1].address(), person(mine), kTimeout);
  EXPECT_TRUE(is_well(client.status().view));
  EXPECT_TRUE(is_well(client.status().view));
  const auto ask = [&](const std::shared_ptr<const Security>& security) {
    StatusClient(servers[1].address(), security, kTimeout).status();
  };
  expect_error<UnavailableError>([&] { ask(nothing); }, servers[1].address());
  expect_error<UnavailableError>([&] { ask(person(other)); }, servers[1].address());
  EXPECT_TRUE(is_well(client.status().view));
}

TEST_F(StatusClientTest, SaysWhatItCannotReach) {
  const std::string address =
      "127.0.0.1:" + std::to_string(listening_address(sockets[0].get()).port);
  // It listens, and nobody answers.
  const auto ask = [&](std::chrono::nanoseconds timeout) {
    StatusClient(address, nothing, timeout).status();
  };
  expect_error<DeadlineExceededError>([&] { ask(200ms); }, address);
  sockets[0].reset();
  expect_error<UnavailableError>([&] { ask(kTimeout); }, "cannot reach " + address);
  expect_error<UnavailableError>([&] { ask(std::chrono::nanoseconds::max()); },
                                 "cannot reach " + address);
  const auto make_client = [&](const std::string& wrong) {
    StatusClient(wrong, nothing, kTimeout);
  };
  expect_error<InvalidArgumentError>([&] { make_client("localhost"); }, "'localhost'");
  expect_error<InvalidArgumentError>([&] { make_client(""); }, "''");
  expect_error<FailedPreconditionError>([&] { make_client("10.0.0.1:2222"); },
                                        "will not connect to 10.0.0.1:2222");
}

TEST_F(StatusClientTest, FindsAClusterThatHasStartedAnew) {
  std::optional<Server> server(make(0));
  StatusClient client(server->address(), nothing, kTimeout);
  const uint64_t before = client.status().view.service;
  server.reset();
  expect_error<UnavailableError>([&] { client.status(); }, "cannot reach");
  server.emplace(spec, distribute::ServerOptions{.job_name = "worker"});
  const auto deadline = std::chrono::steady_clock::now() + kTimeout;
  uint64_t after = before;
  while (after == before) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    try {
      after = client.status().view.service;
    } catch (const UnavailableError&) {  // a channel waits a while before it connects again
    }
  }
  EXPECT_NE(after, 0u);
}

}  // namespace
}  // namespace cohort::internal
