#include "cohort/testing/flaky_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::testing {
namespace {

using internal::UniqueFd;
using namespace std::chrono_literals;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

// Reads what comes within the time; "(end)" and "(reset)" where the connection ends.
std::string receive(const UniqueFd& fd, int milliseconds = 10'000) {
  pollfd readable = {fd.get(), POLLIN, 0};
  if (::poll(&readable, 1, milliseconds) == 0) return "(nothing)";
  std::array<char, 256> block;
  const ssize_t count = ::read(fd.get(), block.data(), block.size());
  if (count < 0) return "(reset)";
  return count == 0 ? "(end)" : std::string(block.data(), static_cast<size_t>(count));
}

struct FlakyProxyTest : ::testing::Test {
  FlakyProxyTest() : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = loopback(0);
    socklen_t size = sizeof(own);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&own), size), 0);
    EXPECT_EQ(::listen(listener.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&own), &size), 0);
    proxy = std::make_unique<FlakyProxy>("127.0.0.1:" + std::to_string(ntohs(own.sin_port)));
  }

  UniqueFd connect() const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(std::stoi(proxy->address().substr(10)));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  UniqueFd accept() const { return UniqueFd(::accept(listener.get(), nullptr, nullptr)); }
  static void send(const UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  UniqueFd listener;
  std::unique_ptr<FlakyProxy> proxy;
};

TEST_F(FlakyProxyTest, PassesBytesAndEndsOn) {
  UniqueFd client = connect();
  const UniqueFd server = accept();
  send(client, "question");
  EXPECT_EQ(receive(server), "question");
  send(server, "answer");
  EXPECT_EQ(receive(client), "answer");
  client.reset();
  EXPECT_EQ(receive(server), "(end)");
}

TEST_F(FlakyProxyTest, DelaysEachWay) {
  const UniqueFd client = connect();
  const UniqueFd server = accept();
  proxy->set_delay(60ms);
  const auto start = std::chrono::steady_clock::now();
  send(client, "late");
  EXPECT_EQ(receive(server), "late");
  EXPECT_GE(std::chrono::steady_clock::now() - start, 60ms);
}

TEST_F(FlakyProxyTest, StallsAndResumes) {
  const UniqueFd client = connect();
  const UniqueFd server = accept();
  proxy->stall();
  send(client, "held");
  EXPECT_EQ(receive(server, 30), "(nothing)");
  const UniqueFd another = connect();
  proxy->resume();
  EXPECT_EQ(receive(server), "held");
}

TEST_F(FlakyProxyTest, CutsAndRefuses) {
  const UniqueFd client = connect();
  const UniqueFd server = accept();
  proxy->cut();
  EXPECT_EQ(receive(client), "(reset)");
  EXPECT_EQ(receive(server), "(reset)");
  const UniqueFd again = connect();
  const UniqueFd second = accept();
  send(again, "served");
  EXPECT_EQ(receive(second), "served");
  proxy->refuse();
  EXPECT_EQ(receive(again), "(reset)");
  EXPECT_EQ(receive(connect()), "(reset)");
}

TEST_F(FlakyProxyTest, RefusesAddressesThatAreNone) {
  EXPECT_THROW(FlakyProxy("localhost:1"), InvalidArgumentError);
  EXPECT_THROW(FlakyProxy("127.0.0.1:0"), InvalidArgumentError);
  EXPECT_THROW(FlakyProxy("127.0.0.1:65536"), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::testing
