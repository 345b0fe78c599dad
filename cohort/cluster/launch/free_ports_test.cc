#include "cohort/cluster/launch/free_ports.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

enum class Reuse { kNo, kYes };

// Whether a server can bind the port and listen.
bool can_listen(int port, Reuse reuse) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = reuse == Reuse::kYes;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool ok = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                  ::listen(socket, 1) == 0;
  ::close(socket);
  return ok;
}

TEST(FreePortsTest, GivesDifferentPorts) {
  const FreePorts ports = pick_free_ports(20);
  ASSERT_EQ(ports.size(), 20);
  std::set<int> numbers;
  for (int i = 0; i < ports.size(); ++i) numbers.insert(ports[i]);
  EXPECT_EQ(numbers.size(), 20u);
  EXPECT_GT(*numbers.begin(), 0);
}

TEST(FreePortsTest, HoldsThemForServersThatReuseAddresses) {
  FreePorts ports = pick_free_ports(1);
  EXPECT_FALSE(can_listen(ports[0], Reuse::kNo));
  EXPECT_TRUE(can_listen(ports[0], Reuse::kYes));
  ports.release();
  EXPECT_TRUE(can_listen(ports[0], Reuse::kNo));
}

TEST(FreePortsTest, MovesWithTheirSockets) {
  FreePorts ports;
  ports = pick_free_ports(1);
  const FreePorts moved = std::move(ports);
  EXPECT_FALSE(can_listen(moved[0], Reuse::kNo));
}

TEST(FreePortsTest, RefusesANegativeCount) {
  EXPECT_THROW(pick_free_ports(-1), InvalidArgumentError);
  EXPECT_EQ(pick_free_ports(0).size(), 0);
}

}  // namespace
}  // namespace cohort::internal
