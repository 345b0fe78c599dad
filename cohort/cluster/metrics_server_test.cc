#include "cohort/cluster/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <optional>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A client that gives up after 20 s.
struct Client {
  explicit Client(int port) : socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  // How much of it was taken.
  size_t send(std::string_view bytes) const {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t size =
          ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (size <= 0) break;
      sent += static_cast<size_t>(size);
    }
    return sent;
  }
  std::string read_all() const {
    std::string all;
    char bytes[4096];
    for (ssize_t size; (size = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;) {
      all.append(bytes, static_cast<size_t>(size));
    }
    return all;
  }
  // Whether the server has closed it.
  bool ended() const {
    char byte;
    return ::recv(socket.get(), &byte, 1, 0) == 0;
  }
  UniqueFd socket;
};

struct MetricsServerTest : ::testing::Test {
  void start(const MetricsLimits& limits = {}) {
    UniqueFd listener = rpc::listen_at("127.0.0.1", 0);
    port = rpc::listening_address(listener.get()).port;
    server.emplace(
        std::move(listener), [this] { return text(); }, limits);
  }
  std::string ask(std::string_view request) const {
    const Client client(port);
    client.send(request);
    return client.read_all();
  }
  void expect_it_answers() const {
    EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
  virtual std::string text() { return "up 1\n"; }

  int port = 0;
  std::optional<MetricsServer> server;
};

TEST_F(MetricsServerTest, AnswersOneRequestAndCloses) {
  start();
  EXPECT_EQ(server->address(), "127.0.0.1:" + std::to_string(port));
  EXPECT_EQ(ask("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 OK\r\n"
            "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            "Content-Length: 5\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\nup 1\n");
  EXPECT_THAT(ask("GET /metrics?name=up HTTP/1.0\n\n"), EndsWith("\r\n\r\nup 1\n"));
  const std::string head = ask("HEAD /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(MetricsServerTest, TakesARequestInPieces) {
  start();
  const Client client(port);
  for (const char c : std::string_view("GET /metrics HTTP/1.1\r\n\r\n")) client.send({&c, 1});
  EXPECT_THAT(client.read_all(), EndsWith("up 1\n"));
}

TEST_F(MetricsServerTest, RefusesWhatIsNoRequest) {
  start();
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"),
              StartsWith("HTTP/1.1 405 "));
  for (const std::string_view garbage :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics HTTP/2\r\n\r\n",
        "GET metrics HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n", "\x16\x03\x01\n\n",
        "GET /m\x1b HTTP/1.1\r\n\r\n"}) {
    EXPECT_THAT(ask(garbage), StartsWith("HTTP/1.1 400 ")) << garbage;
  }
  EXPECT_THAT(ask(std::string("GET /\0 HTTP/1.1\n\n", 18)), StartsWith("HTTP/1.1 400 "));
  expect_it_answers();
}

TEST_F(MetricsServerTest, RefusesARequestThatIsTooLong) {
  start({.max_request_bytes = 1000});
  EXPECT_THAT(ask("GET /" + std::string(2000, 'a')), StartsWith("HTTP/1.1 431 "));
  // The client gets the answer although it sends a megabyte that nobody wants.
  EXPECT_THAT(ask(std::string(1 << 20, '\n').insert(0, "x\r\n")), StartsWith("HTTP/1.1 400 "));
  expect_it_answers();
}

TEST_F(MetricsServerTest, EndsSlowClientsAndServesOthersMeanwhile) {
  start({.max_connections = 2, .timeout = 200ms});
  const Client silent(port);
  const Client slow(port);
  slow.send("GET /met");
  expect_it_answers();  // waits until one of them had its time
  EXPECT_THAT(slow.read_all(), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(silent.read_all(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(MetricsServerTest, EndsAClientThatDoesNotReadOrDoesNotLeave) {
  start({.timeout = 200ms});
  const Client stays(port);
  stays.send("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(stays.read_all(), EndsWith("up 1\n"));
  EXPECT_TRUE(stays.ended());
  expect_it_answers();
}

TEST_F(MetricsServerTest, SurvivesClientsThatGoAway) {
  start();
  for (int i = 0; i < 100; ++i) {
    const Client client(port);
    client.send(i % 2 == 0 ? "GET /met" : "GET /metrics HTTP/1.1\r\n\r\n");
    const linger reset{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(client.socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  expect_it_answers();
}

TEST_F(MetricsServerTest, StopsWithConnectionsOpen) {
  start();
  const Client waits(port);
  waits.send("GET /met");
  server->stop();
  server->stop();
  EXPECT_EQ(waits.read_all(), "");
}

struct LargeMetrics : MetricsServerTest {
  std::string text() override {
    if (fails) throw InternalError("no figures today");
    return std::string(size_t{32} << 20, 'a');
  }
  std::atomic<bool> fails = false;
};

TEST_F(LargeMetrics, AreSentWhole) {
  start();
  EXPECT_THAT(ask("GET /metrics HTTP/1.1\r\n\r\n").size(), ::testing::Gt(size_t{32} << 20));
}

TEST_F(LargeMetrics, ThatAreNotTakenEndWithTheConnection) {
  start({.timeout = 200ms});
  const Client client(port);
  client.send("GET /metrics HTTP/1.1\r\n\r\n");
  Client waits(port);  // served until its own deadline, which is later
  EXPECT_THAT(waits.read_all(), StartsWith("HTTP/1.1 408 "));
  EXPECT_LT(client.read_all().size(), size_t{32} << 20);
}

TEST_F(LargeMetrics, ThatCannotBeMadeAreAnErrorOfTheServer) {
  fails = true;
  start();
  const std::string answer = ask("GET /metrics HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(answer, Not(HasSubstr("today")));
}

}  // namespace
}  // namespace cohort::internal
