#include "cohort/cluster/rpc/listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/testing_threads.h"

namespace cohort::internal::rpc {
namespace {

constexpr int kPatienceMilliseconds = 20'000;

UniqueFd connect_to(int port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

// Whether the other end closes the connection.
bool is_closed(const UniqueFd& socket) {
  pollfd watched{socket.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&watched, 1, kPatienceMilliseconds) == 1 && ::recv(socket.get(), &byte, 1, 0) <= 0;
}

// Keeps what a listener accepts.
struct Taken {
  void operator()(UniqueFd connection) {
    const std::lock_guard lock(mutex);
    connections.push_back(std::move(connection));
    changed.notify_all();
  }
  bool wait_for(size_t count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::milliseconds(kPatienceMilliseconds),
                            [&] { return connections.size() >= count; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<UniqueFd> connections;
};

TEST(Listener, WithoutAThreadIsAnErrorThatSaysSo) {
  Listener listener({});
  const NoMoreThreads none;
  expect_error<ResourceExhaustedError>([&] { listener.start([](UniqueFd) {}); },
                                       "no thread to accept connections with");
}

TEST(Listener, TakesConnections) {
  Taken taken;
  Listener listener({});
  EXPECT_EQ(listener.address(), "127.0.0.1:" + std::to_string(listener.port()));
  EXPECT_TRUE(listener.is_loopback());
  listener.start(std::ref(taken));
  const UniqueFd one = connect_to(listener.port());
  const UniqueFd other = connect_to(listener.port());
  EXPECT_TRUE(taken.wait_for(2));
}

// What systemd does: sockets from descriptor 3 on, told by the environment.
TEST(Listener, TakesTheSocketThatSystemdPassed) {
  const UniqueFd passed = listen_at("127.0.0.1", 0);
  const int port = listening_address(passed.get()).port;
  const auto in_activated = [&](bool for_this_process) {
    return in_forked_child([&] {
      const UniqueFd keep(::dup(passed.get()));
      ::dup2(::open("/dev/null", O_RDONLY), 3);  // systemd passes other kinds, too
      ::dup2(keep.get(), 4);
      ::setenv("LISTEN_FDS", "2", 1);
      ::setenv("LISTEN_PID", std::to_string(for_this_process ? ::getpid() : 1).c_str(), 1);
      const Listener listener({.port = port});
      return listener.address();
    });
  };
  EXPECT_EQ(in_activated(true), "127.0.0.1:" + std::to_string(port));
  EXPECT_THAT(in_activated(false), ::testing::HasSubstr("the port is taken"));
}

TEST(Listener, ListensAtIPv6) {
  Taken taken;
  Listener listener({.host = "::1"});
  EXPECT_EQ(listener.address(), "[::1]:" + std::to_string(listener.port()));
  EXPECT_TRUE(listener.is_loopback());
  listener.start(std::ref(taken));
  UniqueFd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<uint16_t>(listener.port()));
  address.sin6_addr = in6addr_loopback;
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(taken.wait_for(1));
}

TEST(Listener, PortsAreNotShared) {
  const Listener first({});
  expect_error<FailedPreconditionError>([&] { Listener({.port = first.port()}); },
                                        "the port is taken by process");
}

TEST(Listener, AddressesOfOtherHostsAreRefused) {
  expect_error<FailedPreconditionError>([] { Listener({.host = "192.0.2.1"}); },
                                        "it is no address of this host");
  expect_error<UnavailableError>([] { Listener({.host = "no-such-host.invalid"}); },
                                 "is not known");
}

TEST(Listener, RefusesConnectionsAboveTheLimitAndRecovers) {
  Taken taken;
  Listener listener({.max_connections = 2});
  listener.start(std::ref(taken));
  const UniqueFd one = connect_to(listener.port());
  const UniqueFd two = connect_to(listener.port());
  ASSERT_TRUE(taken.wait_for(2));
  EXPECT_TRUE(is_closed(connect_to(listener.port())));
  EXPECT_EQ(listener.refused(), 1U);
  {
    const std::lock_guard lock(taken.mutex);
    taken.connections.pop_back();
  }
  const UniqueFd three = connect_to(listener.port());
  EXPECT_TRUE(taken.wait_for(2));
}

TEST(Listener, TakesAnInheritedSocketOver) {
  UniqueFd socket = listen_at("127.0.0.1", 0);
  const int port = listening_address(socket.get()).port;
  Taken taken;
  Listener listener({.host = "ignored", .port = 1, .listen_fd = socket.release()});
  EXPECT_EQ(listener.port(), port);
  listener.start(std::ref(taken));
  const UniqueFd one = connect_to(port);
  EXPECT_TRUE(taken.wait_for(1));
  expect_error<InvalidArgumentError>([] { Listener({.listen_fd = 0}); },
                                     "descriptor 0 is no listening TCP socket");
}

}  // namespace
}  // namespace cohort::internal::rpc
