#include "cohort/cluster/same_host/server_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/same_host/testing_socket.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string request_of(std::string_view method, std::chrono::nanoseconds timeout) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(timeout.count() >> (8 * i));
  return control_piece(PieceKind::kRequest, 1, bytes.append(method));
}

// What comes until `text` has; less where the connection ends, or 20 s pass.
std::string read_until(const UniqueFd& connection, std::string_view text) {
  std::string came;
  char bytes[4096];
  pollfd watched{connection.get(), POLLIN, 0};
  while (came.find(text) == came.npos && ::poll(&watched, 1, 20'000) == 1) {
    const ssize_t got = ::recv(connection.get(), bytes, sizeof bytes, 0);
    if (got <= 0) break;
    came.append(bytes, static_cast<size_t>(got));
  }
  return came;
}

class ServerConnectionTest : public ::testing::Test {
 protected:
  ~ServerConnectionTest() override {
    for (const auto& connection : connections_) connection->end("the test ends");
    for (const auto& connection : connections_) connection->join();
  }
  // Of a caller that is let in, and whose bytes the test writes itself.
  UniqueFd connect(ServerConnection::Options options) {
    int sockets[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
    UniqueFd caller(sockets[0]);
    options.admit = [](const std::string&) { return AdmittedPeer{.task = {"worker", 0}}; };
    connections_.push_back(
        ServerConnection::start(UniqueFd(sockets[1]), server_.dispatcher, std::move(options)));
    send_all(caller, control_piece(PieceKind::kHello, 0, "ticket"));
    return caller;
  }
  // How the server answers a request that comes bit by bit and never whole.
  std::string answer_to_endless_request(milliseconds timeout, milliseconds longest_request) {
    const UniqueFd caller = connect({.longest_request = longest_request});
    send_all(caller, request_of("echo/echo", timeout));
    std::string came;
    const auto deadline = steady_clock::now() + seconds(20);
    while (came.find("echo/echo") == came.npos && steady_clock::now() < deadline) {
      send_all(caller, encode(PieceHead{.kind = PieceKind::kMessage, .size = 0, .call = 1}));
      char bytes[4096];
      pollfd watched{caller.get(), POLLIN, 0};
      ::poll(&watched, 1, 20);
      const ssize_t got = ::recv(caller.get(), bytes, sizeof bytes, 0);
      if (got > 0) came.append(bytes, static_cast<size_t>(got));
    }
    // The connection is as good as before.
    send_all(caller, control_piece(PieceKind::kPing, 0));
    const std::string pong = control_piece(PieceKind::kPong, 0);
    EXPECT_THAT(read_until(caller, pong), HasSubstr(pong));
    return came;
  }

  TestServer server_;
  std::vector<std::shared_ptr<ServerConnection>> connections_;
};

// Pings alone, each of which would have its answer.
TEST_F(ServerConnectionTest, WhoReadsNoAnswersIsReadNoMoreAndGivenUp) {
  constexpr size_t kFarTooMany = size_t{16} << 20;
  const UniqueFd caller = connect({.stall_timeout = milliseconds(300)});
  std::string pings;
  for (int i = 0; i < 1000; ++i) pings += control_piece(PieceKind::kPing, 0);
  ::testing::internal::CaptureStderr();
  size_t sent = 0;
  bool closed = false;
  pollfd watched{caller.get(), POLLOUT, 0};
  while (!closed && sent < kFarTooMany && ::poll(&watched, 1, 20'000) == 1) {
    const std::string_view rest = std::string_view(pings).substr(sent % pings.size());
    const ssize_t some = ::send(caller.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    closed = some < 0 && errno != EAGAIN;
    sent += static_cast<size_t>(std::max<ssize_t>(some, 0));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_LT(sent, kFarTooMany) << "it keeps answers without a limit";
  EXPECT_TRUE(closed);
  EXPECT_THAT(log, AllOf(HasSubstr(own_process()), HasSubstr("it has read nothing of the")));
}

TEST_F(ServerConnectionTest, WhoStopsWithinARequestIsGivenUp) {
  const std::string request = request_of("echo/echo", seconds(3600));
  const std::string head = encode(PieceHead{.kind = PieceKind::kMessage, .size = 100, .call = 1});
  const std::string first_piece =
      encode(PieceHead{.kind = PieceKind::kMessage, .size = 1, .call = 1}) + "x";
  const std::string half_a_header("\x40\0\0\0fields", 10);  // of 64 bytes
  // Within a piece's head, within a piece, and between two pieces.
  for (const std::string& part : {head.substr(0, 3), head + half_a_header, first_piece}) {
    const UniqueFd caller = connect({.stall_timeout = milliseconds(200)});
    ::testing::internal::CaptureStderr();
    send_all(caller, request + part);
    EXPECT_TRUE(is_closed(caller)) << part.size();
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                AllOf(HasSubstr(own_process()), HasSubstr("it has begun a message")));
  }
}

// Who waits for the answer to one that the server keeps has nothing to send meanwhile.
TEST_F(ServerConnectionTest, WhoHasNothingToSayIsNotGivenUp) {
  const UniqueFd caller = connect({.stall_timeout = milliseconds(200)});
  MessageWriter writer({.claim = {.task = {"worker", 0}}}, {});
  std::string message;
  for (const Bytes& part : writer.piece()) message.append(part.data, part.size);
  send_all(caller, request_of("echo/keep", seconds(3600)) +
                       encode(PieceHead{.kind = PieceKind::kLast,
                                        .size = static_cast<uint32_t>(message.size()),
                                        .call = 1}) +
                       message);
  ASSERT_TRUE(server_.echo->wait_for_kept(1));
  pollfd watched{caller.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, 700), 0) << "it is closed, or has an answer";
}

TEST_F(ServerConnectionTest, ARequestThatNeverComesWholeEndsAtItsDeadline) {
  EXPECT_THAT(answer_to_endless_request(milliseconds(150), seconds(3600)),
              HasSubstr("has not come whole in time"));
}

TEST_F(ServerConnectionTest, ARequestThatNeverComesWholeEndsWithoutADeadlineOfItsOwn) {
  EXPECT_THAT(answer_to_endless_request(seconds(3600), milliseconds(150)),
              HasSubstr("has not come whole in time"));
}

}  // namespace
}  // namespace cohort::internal::rpc
