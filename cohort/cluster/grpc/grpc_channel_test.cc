#include "cohort/cluster/grpc/grpc_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <vector>

#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr CallOptions kShort{.timeout = seconds(20)};

Bytes pattern(size_t size) {
  auto bytes = std::make_shared<std::vector<char>>(size);
  for (size_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<char>(i * 2654435761U >> 24);
  return {bytes, bytes->data(), size};
}

bool same(const Bytes& left, const Bytes& right) {
  return left.size == right.size &&
         (left.size == 0 || std::memcmp(left.data, right.data, left.size) == 0);
}

// Starts a call and gives its result later.
std::future<CallResult> start(Channel& channel, std::string_view method,
                              const CallOptions& options = kShort) {
  auto result = std::make_shared<std::promise<CallResult>>();
  std::future<CallResult> future = result->get_future();
  channel.start(method, {}, options,
                [result](CallResult got) { result->set_value(std::move(got)); });
  return future;
}

// Empty where there is none.
std::string message_of(const std::exception_ptr& error) {
  return error == nullptr ? "" : record_error(error).message;
}

void expect_code(std::future<CallResult> result, Code code) {
  ASSERT_EQ(result.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(record_error(result.get().error).code, code);
}

TEST(GrpcChannel, BringsFieldsAndBulk) {
  TestServer server;
  const auto channel = server.channel();
  const std::vector<size_t> sizes = {
      0, 1, 100, kMaxPieceBytes - 7, kMaxPieceBytes, 3 * kMaxPieceBytes + 5};
  Message request{.control = "fields"};
  for (const size_t size : sizes) request.bulk.push_back(pattern(size));
  const Message reply = channel->call(
      "echo/echo", request, {.timeout = seconds(20), .max_reply_bytes = size_t{16} << 20});
  EXPECT_EQ(reply.control, "fields");
  ASSERT_EQ(reply.bulk.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) EXPECT_TRUE(same(reply.bulk[i], request.bulk[i])) << i;
}

TEST(GrpcChannel, Brings64Megabytes) {
  TestServer server;
  const Bytes bytes = pattern(size_t{64} << 20);
  const Message reply =
      server.channel()->call("echo/echo", {.control = "", .bulk = {bytes}},
                             {.timeout = seconds(20), .max_reply_bytes = bytes.size});
  ASSERT_EQ(reply.bulk.size(), 1U);
  EXPECT_TRUE(same(reply.bulk.front(), bytes));
}

TEST(GrpcChannel, ErrorsArriveAsTheyWereThrown) {
  TestServer server;
  const auto channel = server.channel();
  try {
    channel->call("echo/fail", {}, kShort);
    FAIL() << "no error";
  } catch (const DataLossError& error) {
    EXPECT_STREQ(error.what(), "byte 17 of 'w' is damaged");
    EXPECT_EQ(error.task(), "/job:ps/task:7");
    ASSERT_NE(error_detail(error), nullptr);
    EXPECT_EQ(error_detail(error)->rpc, "echo/fail");
  }
  expect_error<InternalError>([&] { channel->call("echo/forget", {}, kShort); }, "gave no answer");
  expect_error<NotFoundError>([&] { channel->call("echo/nothing", {}, kShort); },
                              "has no method 'echo/nothing'; its services are: echo");
  EXPECT_EQ(channel->call("echo/echo", {.control = "still here"}, kShort).control, "still here");
}

TEST(GrpcChannel, TellsWhoCalls) {
  TestServer server;
  EXPECT_EQ(server.channel({"worker", 3})->call("echo/who", {}, kShort).control,
            "/job:worker/task:3 worker 42");
  expect_error<PermissionDeniedError>(
      [&] {
        server.channel({"stranger", 0})->call("echo/who", {}, kShort);
      },
      "is no task");
}

TEST(GrpcChannel, ADeadlineEndsACall) {
  TestServer server;
  expect_error<DeadlineExceededError>(
      [&] { server.channel()->call("echo/keep", {}, {.timeout = milliseconds(50)}); },
      "did not answer echo/keep within 0.05 s");
  EXPECT_TRUE(server.echo->wait_for_cancelled(1));
}

TEST(GrpcChannel, ClosingEndsCallsOnBothSides) {
  TestServer server;
  const auto channel = server.channel();
  auto result = start(*channel, "echo/keep");
  ASSERT_TRUE(server.echo->wait_for_kept(1));
  channel->close();
  expect_code(std::move(result), Code::kCancelled);
  EXPECT_TRUE(server.echo->wait_for_cancelled(1));
  expect_code(start(*channel, "echo/echo"), Code::kCancelled);
}

// The call's end is then what drops the last channel of the process, on one of gRPC's threads.
TEST(GrpcChannel, CallsMayOutliveTheirChannel) {
  for (int i = 0; i < 50; ++i) {
    TestServer server;
    std::future<CallResult> result;
    {
      const auto channel = server.channel();
      result = start(*channel, "echo/keep");
      ASSERT_TRUE(server.echo->wait_for_kept(1));
    }
    expect_code(std::move(result), Code::kCancelled);
  }
}

TEST(GrpcChannel, ServersThatStopAnswerFirst) {
  TestServer server;
  const auto channel = server.channel();
  auto result = start(*channel, "echo/keep");
  ASSERT_TRUE(server.echo->wait_for_kept(1));
  server.server->stop();
  expect_code(std::move(result), Code::kCancelled);
  expect_code(start(*channel, "echo/echo"), Code::kUnavailable);
}

TEST(GrpcChannel, NobodyThere) {
  std::string address;
  {
    TestServer server;
    address = server.server->address();
  }
  const auto channel =
      make_grpc_channel({.peer = {"ps", 0},
                         .address = address,
                         .self = std::make_shared<Identity>(TaskId{"worker", 0}, 1),
                         .security = security::Security::load({}, std::nullopt),
                         .settings = quick_settings()});
  try {
    channel->call("echo/echo", {}, kShort);
    FAIL() << "no error";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot reach /job:ps/task:0 at " + address));
    EXPECT_EQ(error_detail(error)->peer, "/job:ps/task:0");
  }
  expect_error<DeadlineExceededError>(
      [&] {
        channel->call("echo/echo", {}, {.timeout = milliseconds(100), .wait_for_peer = true});
      },
      "did not answer");
}

// The next connection to a listening socket; empty after 20 s.
UniqueFd next_connection(int listening) {
  pollfd waiting{listening, POLLIN, 0};
  if (::poll(&waiting, 1, 20'000) != 1) return UniqueFd();
  return UniqueFd(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
}

// Reads what a client of HTTP/2 sends until the head of a call has come. Whether it has.
bool read_to_call(int connection) {
  constexpr size_t kPreface = 24, kFrameHead = 9;
  constexpr char kHeaders = 1;
  std::string bytes;
  for (size_t frame = kPreface;;) {
    if (bytes.size() < frame + kFrameHead) {
      char more[4096];
      const ssize_t got = ::recv(connection, more, sizeof more, 0);
      if (got <= 0) return false;
      bytes.append(more, static_cast<size_t>(got));
      continue;
    }
    if (bytes[frame + 3] == kHeaders) return true;
    const auto byte = [&](size_t i) {
      return size_t{static_cast<unsigned char>(bytes[frame + i])};
    };
    frame += kFrameHead + (byte(0) << 16 | byte(1) << 8 | byte(2));
  }
}

// A server that is short of processor time gives a new connection up, and what came over it.
TEST(GrpcChannel, WhatAServerDidNotSeeGoesOverItsNextConnection) {
  UniqueFd socket = listen_at("127.0.0.1", 0);
  const auto channel =
      make_grpc_channel({.peer = {"ps", 0},
                         .address = str("127.0.0.1:", listening_address(socket.get()).port),
                         .self = std::make_shared<Identity>(TaskId{"worker", 0}, 1),
                         .security = security::Security::load({}, std::nullopt),
                         .settings = quick_settings()});
  auto result = start(*channel, "echo/echo");
  const UniqueFd first = next_connection(socket.get());
  ASSERT_TRUE(first.valid());
  const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
  // The last call that it has seen is none.
  const std::string go_away(
      "\0\0\10\7\0\0\0\0\0"
      "\0\0\0\0"
      "\0\0\0\0",
      17);
  ASSERT_EQ(::send(first.get(), settings.data(), settings.size(), MSG_NOSIGNAL), 9);
  ASSERT_TRUE(read_to_call(first.get()));
  ASSERT_EQ(::send(first.get(), go_away.data(), go_away.size(), MSG_NOSIGNAL), 17);
  ::shutdown(first.get(), SHUT_WR);
  TestServer server({}, quick_settings(), {.listen_fd = socket.release()});
  ASSERT_EQ(result.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(message_of(result.get().error), "");
}

TEST(GrpcChannel, LimitsHold) {
  TestServer server;
  const auto channel = server.channel();
  const Bytes byte = pattern(1);
  expect_error<ResourceExhaustedError>(
      [&] { channel->call("echo/who", {.control = "", .bulk = {byte}}, kShort); },
      "more than the 0 tensors that are taken");
  expect_error<ResourceExhaustedError>(
      [&] { channel->call("echo/who", {.control = std::string(70'000, 'x')}, kShort); },
      "at most 66560 are taken");
  expect_error<ResourceExhaustedError>(
      [&] { channel->call("echo/who", {.control = std::string(600'000, 'x')}, kShort); },
      "can be sent");
  const Bytes big = pattern(size_t{2} << 20);
  expect_error<ResourceExhaustedError>(
      [&] { channel->call("echo/echo", {.control = "", .bulk = {big}}, kShort); },
      "answer of echo/echo");
  // Larger than anything that the connection could buffer, so the server has refused it before it
  // has all arrived.
  auto zeros = std::make_shared<std::vector<char>>(size_t{300} << 20);
  const Bytes huge{zeros, zeros->data(), zeros->size()};
  expect_error<ResourceExhaustedError>(
      [&] { channel->call("echo/echo", {.control = "", .bulk = {huge}}, kShort); },
      "more than the 268435456 bytes");
  EXPECT_EQ(channel->call("echo/echo", {.control = "still here"}, kShort).control, "still here");
}

TEST(GrpcChannel, OnlyLoopbackWithoutCredentials) {
  const auto make = [](const std::string& address, const distribute::Credentials& credentials) {
    return make_grpc_channel({.peer = {"ps", 0},
                              .address = address,
                              .self = std::make_shared<Identity>(TaskId{"worker", 0}, 1),
                              .security = security::Security::load(credentials, std::nullopt),
                              .settings = quick_settings()});
  };
  expect_error<FailedPreconditionError>([&] { make("192.0.2.1:80", {}); }, "insecure = true");
  make("192.0.2.1:80", {.insecure = true});
}

TEST(GrpcChannel, ConnectsAgainAtOnceWhereItIsToldTo) {
  // Takes connections and closes them: each attempt fails, and shows itself here.
  const UniqueFd socket = listen_at("127.0.0.1", 0);
  const std::string address = str("127.0.0.1:", listening_address(socket.get()).port);
  const auto take = [&] { return next_connection(socket.get()).valid(); };
  const auto channel =
      make_grpc_channel({.peer = {"ps", 0},
                         .address = address,
                         .self = std::make_shared<Identity>(TaskId{"worker", 0}, 1),
                         .security = security::Security::load({}, std::nullopt),
                         .settings = quick_settings()});
  auto result = start(*channel, "echo/echo");
  const auto begin = steady_clock::now();
  // Left to itself it waits 0.1 s, then 0.16 s, up to 1 s: ten seconds for these.
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(take()) << i;
    if (i == 0) expect_code(std::move(result), Code::kUnavailable);
    while (start(*channel, "echo/echo").get().error == nullptr) FAIL();
    channel->retry_now();
  }
  EXPECT_LT(steady_clock::now() - begin, seconds(5));
}

}  // namespace
}  // namespace cohort::internal::rpc
