// Where a server listens, and what it refuses before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/testing_sockets.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute {
namespace {

using internal::expect_error;
using internal::UniqueFd;
using std::chrono::seconds;

TEST(ServerStart, APortThatIsTakenIsNamedWithItsOwner) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  const auto start = [&] { Server(spec, {.job_name = "worker"}); };
  expect_error<FailedPreconditionError>(start, "cannot listen at " + sockets.addresses[0] +
                                                   ": the port is taken by process " +
                                                   std::to_string(::getpid()));
  sockets.sockets[0].reset();
  start();
}

TEST(ServerStart, RefusesWhatCannotRun) {
  expect_error<InvalidArgumentError>([] { Server(train::ClusterSpec(), {.job_name = "worker"}); },
                                     "ClusterSpec");
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:1"}}});
  expect_error<InvalidArgumentError>([&] { Server(spec, {.job_name = "worker", .task_index = 1}); },
                                     "worker");
  expect_error<InvalidArgumentError>([&] { Server(spec, {.job_name = "ps"}); }, "ps");
  const train::ClusterSpec open({{"worker", {"0.0.0.0:0"}}});
  expect_error<InvalidArgumentError>([&] { Server(open, {.job_name = "worker"}); }, "worker");
  const std::chrono::milliseconds negative(-5);
  expect_error<InvalidArgumentError>(
      [&] { Server(spec, {.job_name = "worker", .start_timeout = negative}); },
      "ServerOptions: start_timeout is -5 ms");
  expect_error<InvalidArgumentError>(
      [&] { Server(spec, {.job_name = "worker", .ps_lease = negative}); },
      "ServerOptions: ps_lease is -5 ms");
  // No socket is opened before: the port is taken, and nobody says so.
  Sockets taken(1);
  const train::ClusterSpec there({{"worker", {taken.addresses[0]}}});
  expect_error<InvalidArgumentError>(
      [&] { Server(there, {.job_name = "worker", .metrics_port = 65536}); },
      "metrics_port is 65536");
  expect_error<InvalidArgumentError>(
      [&] { Server(there, {.job_name = "worker", .heartbeat_interval = seconds(0)}); },
      "heartbeat interval is 0 ms");
}

// Nobody else gets the port; whoever reuses addresses, as servers do, may listen at it.
int reserved_port(UniqueFd& socket) {
  socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

TEST(ServerStart, AFirstTaskThatMayNotBeTalkedToIsAnError) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {"192.0.2.1:2222", sockets.addresses[0]}}});
  expect_error<FailedPreconditionError>(
      [&] {
        Server server(
            spec,
            {.job_name = "worker", .task_index = 1, .listen_fd = sockets.sockets[0].release()});
      },
      "192.0.2.1:2222");
}

TEST(ServerStart, ListensWhereOthersReachItOnlyWithCredentials) {
  UniqueFd reserved;
  const std::string port = std::to_string(reserved_port(reserved));
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:" + port}}});
  const ServerOptions anywhere{.job_name = "worker", .bind_address = "0.0.0.0"};
  expect_error<FailedPreconditionError>([&] { Server(spec, anywhere); },
                                        "nothing would prove who calls");
  ServerOptions insecure = anywhere;
  insecure.credentials.insecure = true;
  Server server(spec, insecure);
  EXPECT_EQ(server.address(), "0.0.0.0:" + port);
}

TEST(ServerStart, OneThatCannotStartIsNoneOfThisProcess) {
  UniqueFd reserved;
  const std::string port = std::to_string(reserved_port(reserved));
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:" + port}}});
  expect_error<FailedPreconditionError>(
      [&] { Server(spec, {.job_name = "worker", .bind_address = "0.0.0.0"}); },
      "nothing would prove who calls");
  int servers = 0;
  const auto owner = std::make_shared<int>();
  const auto attachment =
      internal::attach_to_servers(owner, [&](internal::ServerCore&) { ++servers; });
  EXPECT_EQ(servers, 0);
}

// The answer to one request.
std::string http(int port, const std::string& request) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  std::string all;
  char bytes[4096];
  for (ssize_t size; (size = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;) {
    all.append(bytes, static_cast<size_t>(size));
  }
  return all;
}

TEST(ServerStart, AnswersPrometheusWhereItIsAskedTo) {
  UniqueFd reserved;
  const int port = reserved_port(reserved);
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  const auto options = [&](int metrics_port) {
    return ServerOptions{.job_name = "worker",
                         .listen_fd = ::dup(sockets.sockets[0].get()),
                         .metrics_port = metrics_port};
  };
  expect_error<InvalidArgumentError>([&] { Server(spec, options(65536)); },
                                     "metrics_port is 65536");
  {
    Server server(spec, options(port));
    server.coordination().wait_for_start();
    const std::string answer = http(port, "GET /metrics HTTP/1.1\r\n\r\n");
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_task_up{job=\"worker\",index=\"0\"} 1\n"));
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_cluster_generation 1\n"));
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_stale_calls_refused_total 0\n"));
    expect_error<FailedPreconditionError>([&] { Server(spec, options(port)); },
                                          "the port is taken");
    server.stop();
  }
}

}  // namespace
}  // namespace cohort::distribute
