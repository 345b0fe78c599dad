#include "cohort/testing/virtual_network.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::testing {
namespace {

using internal::UniqueFd;

struct VirtualNetworkTest : ::testing::Test {
  // A UDP socket of the host's, bound to port 7000.
  UniqueFd bound(int host) const {
    UniqueFd fd;
    std::thread maker([&] {  // setns() moves the calling thread alone
      ASSERT_EQ(::setns(network.namespace_fd(host), CLONE_NEWNET), 0);
      fd = UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      const sockaddr_in own = address(host);
      ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)), 0);
    });
    maker.join();
    return fd;
  }

  sockaddr_in address(int host) const {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(7000);
    EXPECT_EQ(::inet_pton(AF_INET, network.address(host).c_str(), &address.sin_addr), 1);
    return address;
  }

  // errno, or 0.
  int send(const UniqueFd& from, int to) const {
    const sockaddr_in target = address(to);
    const ssize_t count =
        ::sendto(from.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&target), sizeof(target));
    return count == 1 ? 0 : errno;
  }

  static bool receives(const UniqueFd& fd, int milliseconds) {
    pollfd readable = {fd.get(), POLLIN, 0};
    char byte;
    return ::poll(&readable, 1, milliseconds) == 1 && ::recv(fd.get(), &byte, 1, 0) == 1;
  }

  VirtualNetwork network{3};
};

TEST_F(VirtualNetworkTest, PartitionsAndHeals) {
  const UniqueFd hosts[] = {bound(0), bound(1), bound(2)};
  EXPECT_EQ(send(hosts[0], 1), 0);
  EXPECT_TRUE(receives(hosts[1], 5'000));

  network.partition({0}, {1, 2}, Partition::kSilent);
  EXPECT_EQ(send(hosts[0], 1), 0);
  EXPECT_EQ(send(hosts[2], 0), 0);
  EXPECT_EQ(send(hosts[1], 2), 0);
  EXPECT_TRUE(receives(hosts[2], 5'000));
  EXPECT_FALSE(receives(hosts[1], 50));
  EXPECT_FALSE(receives(hosts[0], 50));

  network.heal();
  EXPECT_EQ(send(hosts[0], 1), 0);
  EXPECT_TRUE(receives(hosts[1], 5'000));
}

TEST_F(VirtualNetworkTest, LoudPartitionsFailAtOnce) {
  const UniqueFd host = bound(0);
  network.partition({0}, {1}, Partition::kLoud);
  EXPECT_EQ(send(host, 1), EHOSTUNREACH);
  EXPECT_EQ(send(host, 2), 0);
  network.heal();
  EXPECT_EQ(send(host, 1), 0);
}

TEST_F(VirtualNetworkTest, OneWay) {
  const UniqueFd hosts[] = {bound(0), bound(1)};
  network.cut_one_way(0, 1);
  EXPECT_EQ(send(hosts[0], 1), 0);
  EXPECT_FALSE(receives(hosts[1], 50));
  EXPECT_EQ(send(hosts[1], 0), 0);
  EXPECT_TRUE(receives(hosts[0], 5'000));
}

TEST_F(VirtualNetworkTest, LimitsRatesAndChecksHosts) {
  network.limit_rate(0, 4'000'000);
  network.limit_rate(0, 0);
  EXPECT_THROW(network.address(3), InvalidArgumentError);
  EXPECT_THROW(VirtualNetwork(0), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::testing
