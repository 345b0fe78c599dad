// Servers that are killed, stopped, starved of descriptors.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string_view>
#include <thread>

#include "cohort/cluster/grpc/testing_server_process.h"
#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/security/make_certificates.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_folder.h"
#include "cohort/core/testing_time_limit.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr CallOptions kPatient{.timeout = seconds(20), .wait_for_peer = true};

// Fails where the server cannot be reached.
constexpr CallOptions kImpatient{.timeout = seconds(20)};

std::shared_ptr<Channel> channel_to(const std::string& address) {
  return make_grpc_channel({.peer = {"ps", 0},
                            .address = address,
                            .self = std::make_shared<Identity>(TaskId{"worker", 0}, 1),
                            .security = security::Security::load({}, std::nullopt),
                            .settings = quick_settings()});
}

std::future<CallResult> keep(Channel& channel, const CallOptions& options = kPatient) {
  auto result = std::make_shared<std::promise<CallResult>>();
  std::future<CallResult> future = result->get_future();
  channel.start("echo/keep", {}, options,
                [result](CallResult got) { result->set_value(std::move(got)); });
  return future;
}

// How long it takes until the kept call of a server fails, which `fault` befalls.
milliseconds time_to_loss(int fault) {
  const ServerProcess server;
  const auto channel = channel_to(server.address());
  channel->call("echo/echo", {}, kPatient);
  auto result = keep(*channel);
  channel->call("echo/echo", {}, kPatient);  // the kept call was sent before this one
  const auto start = steady_clock::now();
  server.send(fault);
  EXPECT_EQ(result.wait_for(seconds(20)), std::future_status::ready);
  const auto time = steady_clock::now() - start;
  EXPECT_EQ(record_error(result.get().error).code, Code::kUnavailable);
  return std::chrono::duration_cast<milliseconds>(time);
}

TEST(GrpcProcess, AKilledServerIsNoticedAtOnce) {
  const milliseconds time = time_to_loss(SIGKILL);
  RecordProperty("detect_ms", static_cast<int>(time.count()));
  EXPECT_LT(time, time_limit(milliseconds(500)));
}

TEST(GrpcProcess, AStoppedServerIsNoticedByKeepalive) {
  const milliseconds time = time_to_loss(SIGSTOP);
  RecordProperty("detect_ms", static_cast<int>(time.count()));
  EXPECT_LT(time, time_limit(milliseconds(2500)));
}

TEST(GrpcProcess, PingsOfIdleClientsAreWelcome) {
  const ServerProcess server;
  const auto channel = channel_to(server.address());
  channel->call("echo/echo", {}, kPatient);
  // gRPC's own server ends a connection that pings every second after four seconds.
  const auto end = steady_clock::now() + seconds(6);
  auto result = keep(*channel);
  EXPECT_EQ(result.wait_until(end), std::future_status::timeout);
}

std::vector<UniqueFd> flood(const std::string& address, int count) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<UniqueFd> sockets;
  for (int i = 0; i < count; ++i) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
      sockets.push_back(std::move(socket));
    }
  }
  return sockets;
}

// Fault row 49: gRPC's own listener never accepts again after this.
TEST(GrpcProcess, AFloodOfConnectionsPasses) {
  const ServerProcess server("ulimit -n 64; exec");
  const auto before = channel_to(server.address());
  before->call("echo/echo", {}, kPatient);
  {
    const std::vector<UniqueFd> sockets = flood(server.address(), 200);
    EXPECT_EQ(sockets.size(), 200U);
    // Who was there before goes on.
    EXPECT_EQ(before->call("echo/echo", {.control = "on"}, kPatient).control, "on");
  }
  const auto start = steady_clock::now();
  EXPECT_EQ(channel_to(server.address())->call("echo/echo", {.control = "new"}, kPatient).control,
            "new");
  const auto time = steady_clock::now() - start;
  EXPECT_LT(time, seconds(5));
}

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return std::move(text).str();
}

std::string local_address(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return str("127.0.0.1:", ntohs(address.sin_port));
}

// Waits until the server ends the connection.
void wait_for_end(const UniqueFd& socket) {
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  char bytes[4096];
  ssize_t count = 0;
  while ((count = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0) {
  }
  EXPECT_TRUE(count == 0 || errno == ECONNRESET) << errno;
}

TEST(GrpcProcess, AFloodOfRefusedConnectionsIsAFewLines) {
  constexpr int kFlood = 300;
  const TemporaryFolder folder;
  security::make_certificates(
      {.cluster = "test", .tasks = {{"ps", 0}}, .directory = folder / "certificates"});
  const std::string log = folder / "log";
  const ServerProcess server("exec 2> " + log + "; exec", folder / "certificates");
  std::string first;
  for (int i = 0; i < kFlood; ++i) {
    const std::vector<UniqueFd> socket = flood(server.address(), 1);
    ASSERT_EQ(socket.size(), 1U);
    if (first.empty()) first = local_address(socket[0]);
    constexpr std::string_view kRequest = "GET / HTTP/1.1\r\n\r\n";
    ::send(socket[0].get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    wait_for_end(socket[0]);
  }
  const auto give_up = steady_clock::now() + seconds(30);
  std::string text;
  do {
    std::this_thread::sleep_for(milliseconds(10));
    text = text_of(log);
  } while (text.find("more connections were refused within 10 s") == std::string::npos &&
           steady_clock::now() < give_up);
  EXPECT_THAT(
      text, testing::HasSubstr(str("the server at ", server.address(), " refused a connection of ",
                                   first, ": Handshake failed")));
  EXPECT_THAT(text, testing::HasSubstr("http request"));
  EXPECT_THAT(text, testing::ContainsRegex("[0-9]+ more connections were refused within 10 s"));
  // There are some more if the flood itself takes longer than a period.
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), kFlood / 10) << text;
}

int entries(const char* directory) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

// Fault row 52.
TEST(GrpcProcess, StoppingWithCallsUnderWayLeavesNothingBehind) {
  constexpr int kRounds = 200;
  constexpr int kWarmUp = 20;
  int descriptors = 0;
  int threads = 0;
  milliseconds worst(0);
  for (int round = 0; round < kRounds; ++round) {
    if (round == kWarmUp) {
      descriptors = entries("/proc/self/fd");
      threads = entries("/proc/self/task");
    }
    TestServer server;
    const auto channel = server.channel();
    std::vector<std::future<CallResult>> calls;
    for (int i = 0; i < 5; ++i) calls.push_back(keep(*channel, kImpatient));
    ASSERT_TRUE(server.echo->wait_for_kept(round % 6));
    const auto start = steady_clock::now();
    server.server->stop();
    for (auto& call : calls) {
      ASSERT_EQ(call.wait_for(seconds(20)), std::future_status::ready);
      const Code code = record_error(call.get().error).code;
      EXPECT_TRUE(code == Code::kCancelled || code == Code::kUnavailable) << code_name(code);
    }
    worst = std::max(worst, std::chrono::duration_cast<milliseconds>(steady_clock::now() - start));
  }
  RecordProperty("worst_stop_ms", static_cast<int>(worst.count()));
  EXPECT_LT(worst, time_limit(seconds(2)));
  EXPECT_LE(entries("/proc/self/fd"), descriptors + 2);
  EXPECT_LE(entries("/proc/self/task"), threads + 2);
}

}  // namespace
}  // namespace cohort::internal::rpc
