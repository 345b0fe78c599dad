#include "cohort/cluster/rpc/new_peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

UniqueFd new_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

TEST(NewPeers, AreThoseThatAreOpenAndHaveNotCalled) {
  NewPeers peers;
  const UniqueFd first = new_socket();
  UniqueFd second = new_socket();
  const UniqueFd third = new_socket();
  peers.add(first.get(), "10.0.0.1:1000");
  peers.add(second.get(), "[::1]:2000");
  peers.add(third.get(), "10.0.0.1:3000");
  EXPECT_THAT(peers.waiting(), ElementsAre("10.0.0.1:3000", "[::1]:2000", "10.0.0.1:1000"));
  peers.has_called("ipv4:10.0.0.1:1000");
  peers.has_called("ipv4:10.0.0.1:4000");
  EXPECT_THAT(peers.waiting(), ElementsAre("10.0.0.1:3000", "[::1]:2000"));
  // Another socket gets its number.
  const int number = second.get();
  second = new_socket();
  ASSERT_EQ(::dup2(second.get(), number), number);
  EXPECT_THAT(peers.waiting(), ElementsAre("10.0.0.1:3000"));
  peers.has_called("ipv6:%5B::1%5D:3000");
  EXPECT_THAT(peers.waiting(), IsEmpty());
  ::close(number);
}

TEST(NewPeers, AreBounded) {
  NewPeers peers;
  const UniqueFd socket = new_socket();
  for (int i = 0; i < 1000; ++i) peers.add(socket.get(), str("10.0.0.1:", i));
  EXPECT_EQ(peers.waiting().size(), 256u);
  EXPECT_EQ(peers.waiting().front(), "10.0.0.1:999");
}

}  // namespace
}  // namespace cohort::internal::rpc
