#include "cohort/cluster/same_host/host_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/grpc/testing_services.h"
#include "cohort/cluster/same_host/caller_connection.h"
#include "cohort/cluster/same_host/host_server.h"
#include "cohort/cluster/same_host/testing_socket.h"
#include "cohort/core/bytes/wire.h"
#include "cohort/core/host/cores.h"
#include "cohort/core/host/host_identity.h"
#include "cohort/core/host/random_hex.h"
#include "cohort/core/host/unix_socket.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr CallOptions kShortWay{
    .timeout = seconds(20), .max_reply_bytes = size_t{256} << 20, .same_host = true};

Bytes pattern(size_t size) {
  auto bytes = std::make_shared<std::vector<char>>(size);
  for (size_t i = 0; i < size; ++i) (*bytes)[i] = static_cast<char>(i * 2654435761U >> 24);
  return {bytes, bytes->data(), size};
}

bool same(const Bytes& left, const Bytes& right) {
  return left.size == right.size &&
         (left.size == 0 || std::memcmp(left.data, right.data, left.size) == 0);
}

UniqueFd connected_to(const std::string& name) {
  UniqueFd socket = unix_socket();
  EXPECT_EQ(connect_to_name(socket, name), Connected::kYes);
  return socket;
}

// Counts the calls that go the long way.
class CountingChannel final : public Channel {
 public:
  explicit CountingChannel(std::shared_ptr<Channel> channel) : channel_(std::move(channel)) {}
  const TaskId& peer() const override { return channel_->peer(); }
  const std::string& address() const override { return channel_->address(); }
  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    ++calls;
    channel_->start(method, std::move(request), options, std::move(done));
  }
  void close() override { channel_->close(); }

  std::atomic<int> calls{0};

 private:
  const std::shared_ptr<Channel> channel_;
};

class HostChannelTest : public ::testing::Test {
 protected:
  // Until calls take the short way.
  void connect() {
    const auto deadline = steady_clock::now() + seconds(20);
    for (int before = -1; long_way_->calls != before;) {
      ASSERT_LT(steady_clock::now(), deadline) << "calls keep going the long way";
      before = long_way_->calls;
      channel_->call("echo/echo", {.control = "hello"}, kShortWay);
    }
  }
  std::future<CallResult> start(std::string_view method, Message request = {},
                                CallOptions options = kShortWay) {
    auto result = std::make_shared<std::promise<CallResult>>();
    std::future<CallResult> future = result->get_future();
    channel_->start(method, std::move(request), options,
                    [result](CallResult got) { result->set_value(std::move(got)); });
    return future;
  }
  static void expect_code(std::future<CallResult> result, Code code) {
    ASSERT_EQ(result.wait_for(seconds(20)), std::future_status::ready);
    EXPECT_EQ(record_error(result.get().error).code, code);
  }
  TestServer server_;
  HostServer host_{server_.dispatcher, {.settings = quick_settings(), .same_process = true}};
  std::shared_ptr<CountingChannel> long_way_ = std::make_shared<CountingChannel>(server_.channel());
  std::shared_ptr<Channel> channel_ = prefer_same_host(
      long_way_, std::make_shared<Identity>(TaskId{"worker", 0}, 42), quick_settings());
};

TEST_F(HostChannelTest, BringsFieldsAndBulkTheShortWay) {
  connect();
  const int before = long_way_->calls;
  Message request{.control = "fields"};
  for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, kMaxPieceBytes - 7, kMaxPieceBytes,
                            20 * kMaxPieceBytes + 5}) {
    request.bulk.push_back(pattern(size));
  }
  const Message reply = channel_->call("echo/echo", request, kShortWay);
  EXPECT_EQ(reply.control, "fields");
  ASSERT_EQ(reply.bulk.size(), request.bulk.size());
  for (size_t i = 0; i < reply.bulk.size(); ++i) EXPECT_TRUE(same(reply.bulk[i], request.bulk[i]));
  EXPECT_EQ(channel_->call("echo/who", {}, kShortWay).control, "/job:worker/task:0 worker 42");
  EXPECT_EQ(long_way_->calls, before);
}

TEST_F(HostChannelTest, ManyThreadsCallAtOnce) {
  connect();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::future<CallResult>> results;
      const Bytes bulk = pattern(300'000 + 1000 * static_cast<size_t>(t));
      for (int i = 0; i < 50; ++i) results.push_back(start("echo/echo", {"control", {bulk}}));
      for (auto& result : results) {
        const CallResult got = result.get();
        right += !got.error && got.reply.bulk.size() == 1 && same(got.reply.bulk[0], bulk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 200);
}

TEST_F(HostChannelTest, ErrorsArriveAsTheyWereThrown) {
  connect();
  expect_error<DataLossError>([&] { channel_->call("echo/fail", {}, kShortWay); },
                              "byte 17 of 'w' is damaged");
  expect_code(start("echo/none"), Code::kNotFound);
  expect_code(start("echo/forget"), Code::kInternal);
  expect_code(start("echo/change"), Code::kPermissionDenied);
  CallOptions little = kShortWay;
  little.max_reply_bytes = 10;
  expect_code(start("echo/echo", {"", {pattern(1000)}}, little), Code::kResourceExhausted);
  EXPECT_EQ(channel_->call("echo/echo", {.control = "still there"}, kShortWay).control,
            "still there");
}

TEST_F(HostChannelTest, ACallEndsAtItsDeadlineAndTheServiceHearsOfIt) {
  connect();
  CallOptions brief = kShortWay;
  brief.timeout = milliseconds(150);
  expect_code(start("echo/keep", {}, brief), Code::kDeadlineExceeded);
  EXPECT_TRUE(server_.echo->wait_for_cancelled(1));
}

TEST_F(HostChannelTest, WhoWaitsForAnAnswerReceivesThoseOfOthersToo) {
  connect();
  bool received_by_who_waits = false;
  // The connection's own thread may just be looking whether there is anything.
  for (int attempt = 1; attempt <= 20 && !received_by_who_waits; ++attempt) {
    CallResult kept;
    std::thread waiting([&] {
      CallOptions brief = kShortWay;
      brief.timeout = milliseconds(300);
      kept = channel_->wait_for("echo/keep", {}, brief);
    });
    ASSERT_TRUE(server_.echo->wait_for_kept(attempt));
    std::promise<std::thread::id> receiver;
    channel_->start("echo/echo", {}, kShortWay,
                    [&](const CallResult&) { receiver.set_value(std::this_thread::get_id()); });
    received_by_who_waits = receiver.get_future().get() == waiting.get_id();
    waiting.join();
    EXPECT_EQ(record_error(kept.error).code, Code::kDeadlineExceeded);
    EXPECT_TRUE(server_.echo->wait_for_cancelled(attempt));
  }
  EXPECT_TRUE(received_by_who_waits);
}

TEST_F(HostChannelTest, WaitsOnSeveralThreadsEndEachWithItsOwnAnswer) {
  connect();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Bytes bulk = pattern(1000 + 100'000 * static_cast<size_t>(t));
      for (int i = 0; i < 200; ++i) {
        const CallResult got = channel_->wait_for("echo/echo", {"control", {bulk}}, kShortWay);
        right += !got.error && got.reply.bulk.size() == 1 && same(got.reply.bulk[0], bulk);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 800);
}

TEST_F(HostChannelTest, AWaitEndsWithItsServer) {
  connect();
  CallResult kept;
  std::thread waiting([&] { kept = channel_->wait_for("echo/keep", {}, kShortWay); });
  ASSERT_TRUE(server_.echo->wait_for_kept(1));
  host_.stop();
  waiting.join();
  EXPECT_EQ(record_error(kept.error).code, Code::kUnavailable);
}

TEST_F(HostChannelTest, AnAnswerMayCloseTheChannelOnTheThreadThatWaits) {
  connect();
  CallResult kept;
  std::thread waiting([&] { kept = channel_->wait_for("echo/keep", {}, kShortWay); });
  ASSERT_TRUE(server_.echo->wait_for_kept(1));
  channel_->start("echo/echo", {}, kShortWay, [&](const CallResult&) { channel_->close(); });
  waiting.join();
  EXPECT_EQ(record_error(kept.error).code, Code::kCancelled);
  EXPECT_TRUE(server_.echo->wait_for_cancelled(1));
}

TEST_F(HostChannelTest, CallsOfAClosedChannelAreCancelled) {
  connect();
  auto kept = start("echo/keep");
  ASSERT_TRUE(server_.echo->wait_for_kept(1));
  channel_->close();
  expect_code(std::move(kept), Code::kCancelled);
  EXPECT_TRUE(server_.echo->wait_for_cancelled(1));
  expect_code(start("echo/echo"), Code::kCancelled);
}

TEST_F(HostChannelTest, AfterALossCallsGoTheLongWay) {
  connect();
  auto kept = start("echo/keep");
  ASSERT_TRUE(server_.echo->wait_for_kept(1));
  host_.stop();
  expect_code(std::move(kept), Code::kUnavailable);
  const int before = long_way_->calls;
  EXPECT_EQ(channel_->call("echo/echo", {.control = "hello"}, kShortWay).control, "hello");
  EXPECT_GT(long_way_->calls, before);
}

TEST_F(HostChannelTest, OtherCallsGoTheLongWay) {
  connect();
  const int before = long_way_->calls;
  channel_->call("echo/echo", {}, {.timeout = seconds(20)});
  EXPECT_EQ(long_way_->calls, before + 1);
}

TEST_F(HostChannelTest, WithoutATicketNobodyGetsIn) {
  const std::string pieces[] = {
      std::string(100, 'x'), control_piece(PieceKind::kHello, 0, std::string(32, '0')),
      control_piece(PieceKind::kRequest, 1, "12345678echo/echo"),
      encode(PieceHead{.kind = PieceKind::kLast, .size = 0, .call = 1}),
      encode(PieceHead{.kind = PieceKind::kHello, .size = 1 << 20, .call = 0})};
  for (const std::string& piece : pieces) {
    const UniqueFd connection = connected_to(host_.socket_name());
    ASSERT_EQ(::send(connection.get(), piece.data(), piece.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(piece.size()));
    EXPECT_TRUE(is_closed(connection));
  }
  EXPECT_EQ(channel_->call("echo/echo", {.control = "hello"}, kShortWay).control, "hello");
}

TEST_F(HostChannelTest, ATicketCountsOnce) {
  const HandshakeAnswer offer =
      decode_handshake(server_.channel()->call(kHandshake, handshake(), {.timeout = seconds(20)}));
  ASSERT_EQ(offer.name, host_.socket_name());
  const std::string hello = control_piece(PieceKind::kHello, 0, offer.ticket);
  const UniqueFd first = connected_to(offer.name);
  const std::string ping = hello + control_piece(PieceKind::kPing, 0);
  ASSERT_GT(::send(first.get(), ping.data(), ping.size(), MSG_NOSIGNAL), 0);
  pollfd watched{first.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 20'000), 1);
  std::string answer(kPieceHeadBytes, ' ');
  ASSERT_EQ(::recv(first.get(), answer.data(), answer.size(), 0),
            static_cast<ssize_t>(kPieceHeadBytes));
  EXPECT_EQ(decode_piece_head(answer).kind, PieceKind::kPong);
  const UniqueFd second = connected_to(offer.name);
  ASSERT_GT(::send(second.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(is_closed(second));
}

TEST(HostChannel, TasksOfOneProcessAndOtherHostsGoTheLongWay) {
  TestServer server;
  HostServer host(server.dispatcher, {.settings = quick_settings()});
  const HandshakeAnswer offer =
      decode_handshake(server.channel()->call(kHandshake, handshake(), {.timeout = seconds(20)}));
  EXPECT_EQ(offer.name, "");
  EXPECT_EQ(offer.ticket, "");
}

TEST(HostChannel, TheCallerLearnsWhetherBothCanHaveCores) {
  TestServer server;
  HostServer host(server.dispatcher, {.settings = quick_settings(), .same_process = true});
  const auto answer = [&](const Message& question) {
    return decode_handshake(server.channel()->call(kHandshake, question, {.timeout = seconds(20)}));
  };
  const cpu_set_t own = own_cores();
  EXPECT_EQ(answer(handshake()).each_has_a_core, CPU_COUNT(&own) > 1);
  WireWriter without_cores;
  without_cores.bytes(1, host_identity()).varint(2, static_cast<uint64_t>(::getpid()));
  const HandshakeAnswer offer = answer({.control = without_cores.str()});
  EXPECT_EQ(offer.name, host.socket_name());
  EXPECT_FALSE(offer.each_has_a_core);
}

// Answers handshakes with an answer of the test's.
class DoorChannel final : public Channel {
 public:
  DoorChannel(std::shared_ptr<CountingChannel> channel, std::string offer)
      : channel_(std::move(channel)), door_(std::move(offer)) {}
  const TaskId& peer() const override { return channel_->peer(); }
  const std::string& address() const override { return channel_->address(); }
  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    if (method != kHandshake) {
      return channel_->start(method, std::move(request), options, std::move(done));
    }
    WireWriter answer;
    answer.bytes(1, door_).bytes(2, "ticket");
    done({.error = nullptr, .reply = {.control = answer.str()}});
  }
  void close() override { channel_->close(); }

 private:
  const std::shared_ptr<CountingChannel> channel_;
  const std::string door_;
};

// The system connects who calls to a socket that nobody accepts at.
TEST(HostChannel, CallsGoTheLongWayUntilTheServerHasAcceptedTheConnection) {
  TestServer server;
  const std::string offer = "cohort-test-" + random_hex(8);
  const UniqueFd listening = listen_at_name(offer);
  const auto long_way = std::make_shared<CountingChannel>(server.channel());
  const auto channel =
      prefer_same_host(std::make_shared<DoorChannel>(long_way, offer),
                       std::make_shared<Identity>(TaskId{"worker", 0}, 42), quick_settings());
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(channel->call("echo/echo", {.control = "hello"}, kShortWay).control, "hello");
    EXPECT_EQ(long_way->calls, i);
  }
  const UniqueFd accepted(
      ::accept4(listening.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  ASSERT_TRUE(accepted.valid());
  const std::string pong = control_piece(PieceKind::kPong, 0);
  ASSERT_GT(::send(accepted.get(), pong.data(), pong.size(), MSG_NOSIGNAL), 0);
  std::string came;
  const auto deadline = steady_clock::now() + seconds(20);
  while (came.find("echo/echo") == came.npos) {
    ASSERT_LT(steady_clock::now(), deadline) << "calls keep going the long way";
    channel->start("echo/echo", {}, kShortWay, [](const CallResult&) {});
    pollfd watched{accepted.get(), POLLIN, 0};
    ::poll(&watched, 1, 10);
    char bytes[4096];
    const ssize_t got = ::recv(accepted.get(), bytes, sizeof bytes, 0);
    if (got > 0) came.append(bytes, static_cast<size_t>(got));
  }
  channel->close();
}

TEST(HostChannel, CallsToAServerThatHasNoRoomGoTheLongWay) {
  TestServer server;
  HostServer host(server.dispatcher,
                  {.settings = quick_settings(), .same_process = true, .most_connections = 0});
  const auto long_way = std::make_shared<CountingChannel>(server.channel());
  const auto channel = prefer_same_host(
      long_way, std::make_shared<Identity>(TaskId{"worker", 0}, 42), quick_settings());
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(channel->call("echo/echo", {.control = "hello"}, kShortWay).control, "hello");
  }
  EXPECT_EQ(long_way->calls, 501) << "it has asked once";
}

// Takes the socket.
std::shared_ptr<CallerConnection> connection_over(int socket, const TransportSettings& settings) {
  return CallerConnection::start(UniqueFd(socket), "ticket",
                                 {.peer = {"ps", 0},
                                  .address = "here",
                                  .self = std::make_shared<Identity>(TaskId{"worker", 0}, 42),
                                  .settings = settings});
}

// How the first call of a connection to nobody ends. A busy machine may let the limit pass before
// the call begins: then another connection is made.
ErrorRecord end_of_call(const TransportSettings& settings) {
  Message request{"", {pattern(size_t{8} << 20)}};  // more than the socket takes
  for (int attempt = 0; attempt < 20; ++attempt) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) break;
    const UniqueFd other(sockets[1]);
    const auto connection = connection_over(sockets[0], settings);
    std::promise<CallResult> result;
    std::function<void(CallResult)> done = [&](CallResult got) {
      result.set_value(std::move(got));
    };
    if (!connection->start_call("echo/echo", request, kShortWay, done)) continue;
    std::future<CallResult> future = result.get_future();
    if (future.wait_for(seconds(20)) != std::future_status::ready) break;
    EXPECT_TRUE(connection->has_ended());
    EXPECT_FALSE(connection->is_accepted());
    done = [](const CallResult&) {};
    EXPECT_FALSE(connection->start_call("echo/echo", request, kShortWay, done));
    return record_error(future.get().error);
  }
  ADD_FAILURE() << "no call has ended";
  return {};
}

TEST(CallerConnection, APeerThatStandsStillIsGivenUp) {
  const ErrorRecord error =
      end_of_call({.keepalive_time = milliseconds(100), .keepalive_timeout = milliseconds(100)});
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("no sign of life"));
}

// Each call ends before it is time to ask for a sign of life, and leaves its request in the queue.
TEST(CallerConnection, APeerThatReadsNothingIsGivenUpWhereAllCallsAreBrief) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd other(sockets[1]);
  const auto connection = connection_over(sockets[0], {.keepalive_time = milliseconds(500),
                                                       .keepalive_timeout = milliseconds(100),
                                                       .handshake_timeout = std::chrono::hours(1)});
  CallOptions brief = kShortWay;
  brief.timeout = milliseconds(1);
  const Bytes bulk = pattern(size_t{8} << 20);  // more than the socket takes
  ::testing::internal::CaptureStderr();
  const auto deadline = steady_clock::now() + seconds(20);
  while (!connection->has_ended() && steady_clock::now() < deadline) {
    Message request{"", {bulk}};
    connection->call("echo/echo", request, brief);
  }
  EXPECT_TRUE(connection->has_ended());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr(own_process()), HasSubstr("it has read nothing of the")));
}

TEST(CallerConnection, APeerThatLetsNobodyInIsGivenUp) {
  const ErrorRecord error = end_of_call({.handshake_timeout = milliseconds(100)});
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr("not let in within 100 ms"));
}

}  // namespace
}  // namespace cohort::internal::rpc
