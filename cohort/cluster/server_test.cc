#include "cohort/cluster/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/server_registry.h"
#include "cohort/core/files/unique_fd.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute {
namespace {

using internal::expect_error;
using internal::UniqueFd;
using internal::rpc::listen_at;
using internal::rpc::listening_address;
using std::chrono::seconds;

constexpr internal::rpc::CallOptions kCall{.timeout = seconds(20)};

// Listening sockets at free ports of loopback, which servers take over: no race for a port.
struct Sockets {
  explicit Sockets(int count) {
    for (int i = 0; i < count; ++i) {
      sockets.push_back(listen_at("127.0.0.1", 0));
      addresses.push_back("127.0.0.1:" +
                          std::to_string(listening_address(sockets.back().get()).port));
    }
  }
  std::vector<UniqueFd> sockets;
  std::vector<std::string> addresses;
};

struct Cluster {
  Sockets sockets{3};
  train::ClusterSpec spec{
      {{"worker", {sockets.addresses[0], sockets.addresses[1]}}, {"ps", {sockets.addresses[2]}}}};
  Server worker0{
      spec, {.job_name = "worker", .task_index = 0, .listen_fd = sockets.sockets[0].release()}};
  Server worker1{
      spec, {.job_name = "worker", .task_index = 1, .listen_fd = sockets.sockets[1].release()}};
  Server ps{spec, {.job_name = "ps", .task_index = 0, .listen_fd = sockets.sockets[2].release()}};
};

TEST(Server, WhatIsAttachedToItMayEndMeanwhile) {
  struct Owner {
    std::shared_ptr<void> attachment;
  };
  auto owner = std::make_shared<Owner>();
  const std::weak_ptr<Owner> lives = owner;
  int attached = 0;
  owner->attachment = internal::attach_to_servers(owner, [&](internal::ServerCore&) {
    ++attached;
    owner.reset();  // as its user may on another thread
    EXPECT_FALSE(lives.expired());
  });
  Cluster cluster;
  EXPECT_EQ(attached, 1);
  EXPECT_TRUE(lives.expired());
}

TEST(Server, SeveralOfOneProcessReachEachOther) {
  Cluster cluster;
  EXPECT_EQ(cluster.ps.target(), "grpc://" + cluster.sockets.addresses[2]);
  EXPECT_EQ(cluster.ps.task(), (TaskId{"ps", 0}));
  const auto channel = cluster.worker0.core().channel({"ps", 0});
  EXPECT_THAT(channel->call("server/who", {}, kCall).control,
              ::testing::StartsWith("/job:ps/task:0 "));
  EXPECT_EQ(channel, cluster.worker0.core().channel({"ps", 0}));
  expect_error<FailedPreconditionError>(
      [&] {
        cluster.worker0.core().channel({"ps", 1});
      },
      "no address of /job:ps/task:1 is known");
}

TEST(Server, OnlyTheCoordinatorOfTheClusterEndsATask) {
  Sockets sockets(3);
  const train::ClusterSpec spec({{"chief", {sockets.addresses[0]}},
                                 {"worker", {sockets.addresses[1]}},
                                 {"ps", {sockets.addresses[2]}}});
  const auto make = [&](const std::string& job, size_t socket) {
    return Server(spec, {.job_name = job, .listen_fd = sockets.sockets[socket].release()});
  };
  Server chief = make("chief", 0);
  Server worker = make("worker", 1);
  Server ps = make("ps", 2);
  for (const Server* server : {&chief, &worker, &ps}) server->coordination().wait_for_start();
  const auto stop = [&](const std::shared_ptr<internal::rpc::Channel>& channel) {
    channel->call("server/stop", {.control = "done"}, kCall);
  };
  expect_error<PermissionDeniedError>(
      [&] {
        stop(worker.core().channel({"ps", 0}));
      },
      "its role is worker");
  internal::ChannelPool stranger(std::make_shared<internal::rpc::Identity>(TaskId{"chief", 0}, 1),
                                 internal::security::Security::load({}, std::nullopt),
                                 internal::rpc::quick_settings());
  expect_error<AbortedError>(
      [&] {
        stop(stranger.channel({"ps", 0}, ps.address()));
      },
      "incarnation 0000000000000001");
  auto joined = std::async(std::launch::async, [&] { return ps.join(); });
  stop(chief.core().channel({"ps", 0}));
  ASSERT_EQ(joined.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(joined.get(), 0);
}

TEST(Server, SignalsEndJoin) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  Server server(spec, {.job_name = "worker", .listen_fd = sockets.sockets[0].release()});
  const auto default_handler = std::signal(SIGTERM, SIG_IGN);  // until join() takes it
  auto joined = std::async(std::launch::async, [&] { return server.join(); });
  while (joined.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    ::kill(::getpid(), SIGTERM);
  }
  EXPECT_EQ(joined.get(), 143);
  std::signal(SIGTERM, default_handler);
}

TEST(Server, WhatMadeItGiveUpIsThrownByJoin) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  Server server(spec, {.job_name = "worker", .listen_fd = sockets.sockets[0].release()});
  server.core().request_stop(std::make_exception_ptr(AbortedError("another took its place")));
  expect_error<AbortedError>([&] { server.join(); }, "another took its place");
}

// Two servers; what on_error's handler gets begins with errors that the second one reports.
struct Pair {
  Sockets sockets{2};
  train::ClusterSpec spec{{{"worker", {sockets.addresses[0], sockets.addresses[1]}}}};
  Server first{spec,
               {.job_name = "worker", .task_index = 0, .listen_fd = sockets.sockets[0].release()}};
  Server second{spec,
                {.job_name = "worker", .task_index = 1, .listen_fd = sockets.sockets[1].release()}};
  Pair() {
    first.coordination().wait_for_start();
    second.coordination().wait_for_start();
  }
  void report(const std::string& text) {
    second.coordination().report(std::make_exception_ptr(DataLossError(text)));
  }
};

TEST(Server, AHandlerOfErrorsMayStopIt) {
  Pair pair;
  std::promise<void> joins;
  auto joined = std::async(std::launch::async, [&] {
    joins.set_value();
    return pair.first.join();
  });
  joins.get_future().wait();
  std::promise<void> other_begins;
  auto handled = std::make_shared<std::promise<void>>();
  std::thread other;
  pair.first.coordination().on_error([&, handled](const std::exception_ptr&) {
    // Another thread stops it, too, and waits for this handler to end.
    other = std::thread([&] {
      other_begins.set_value();
      pair.first.stop("by another thread");
    });
    other_begins.get_future().wait();
    pair.first.stop("by the handler");
    handled->set_value();
  });
  pair.report("an error");
  ASSERT_EQ(handled->get_future().wait_for(seconds(20)), std::future_status::ready);
  ASSERT_EQ(joined.wait_for(seconds(20)), std::future_status::ready);
  EXPECT_EQ(joined.get(), 0);
  other.join();
}

TEST(Server, AHandlerThatThrowsGetsTheNextError) {
  Pair pair;
  std::promise<void> first;
  std::promise<void> second;
  int errors = 0;
  pair.first.coordination().on_error([&](const std::exception_ptr& error) {
    ++errors == 1 ? first.set_value() : second.set_value();
    std::rethrow_exception(error);
  });
  pair.report("one");
  ASSERT_EQ(first.get_future().wait_for(seconds(20)), std::future_status::ready);
  pair.report("two");
  EXPECT_EQ(second.get_future().wait_for(seconds(20)), std::future_status::ready);
  pair.first.coordination().on_error(nullptr);
}

TEST(Server, WhatEndedTheMembershipIsThrownAlsoIfAnotherErrorWasUnderWay) {
  Pair pair;
  std::promise<void> reported;
  std::promise<void> ended;
  // The second one waits in its handler until it has lost the first; another report waits behind.
  std::vector<std::string> errors;
  auto release = ended.get_future().share();
  pair.second.coordination().on_error([&](const std::exception_ptr& error) {
    errors.push_back(internal::record_error(error).message);
    if (errors.size() > 1) return;
    reported.set_value();
    release.wait();
  });
  const auto version = [&] { return pair.first.core().membership().status().version; };
  const int64_t before = version();
  pair.first.coordination().report(std::make_exception_ptr(DataLossError("of the first one")));
  pair.first.coordination().report(std::make_exception_ptr(DataLossError("a second of it")));
  ASSERT_EQ(reported.get_future().wait_for(seconds(20)), std::future_status::ready);
  internal::membership::MembershipAgent& agent = pair.second.core().membership().agent();
  while (version() < before + 2 || agent.view()->version < version()) std::this_thread::yield();
  pair.first.stop();
  expect_error<UnavailableError>([&] { agent.wait_for_group(1000, seconds(60)); }, "lost");
  ended.set_value();
  expect_error<UnavailableError>([&] { pair.second.join(); }, "lost the coordination service");
}

// Counts what nobody else took.
std::atomic<int> unwatched_signals{0};

// A service that a signal reaches while its server ends.
class LateSignal : public internal::rpc::Service {
 public:
  std::string_view name() const override { return "late_signal"; }
  std::span<const internal::rpc::MethodSpec> methods() const override { return {}; }
  void handle(size_t, std::unique_ptr<internal::rpc::Call>) override {}
  void stop() override { ::raise(SIGTERM); }
};

TEST(Server, ASignalDoesNotCutTheEndShort) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  const auto before = std::signal(SIGTERM, [](int) { ++unwatched_signals; });
  {
    Server server(spec, {.job_name = "worker", .listen_fd = sockets.sockets[0].release()});
    server.core().add(std::make_shared<LateSignal>());
    auto joined = std::async(std::launch::async, [&] { return server.join(); });
    server.core().request_stop("");
    EXPECT_EQ(joined.get(), 128 + SIGTERM);
  }
  EXPECT_EQ(unwatched_signals, 0);
  std::signal(SIGTERM, before);
}

TEST(Server, TheCoordinatingTaskEndsOnceTheOthersHaveLeft) {
  Pair pair;
  auto stopped = std::async(std::launch::async, [&] {
    const auto begin = std::chrono::steady_clock::now();
    pair.first.stop();
    return std::chrono::steady_clock::now() - begin;
  });
  // Once it has left it waits for the other one.
  while (pair.second.core().membership().agent().generation() == 1) std::this_thread::yield();
  pair.second.stop();
  EXPECT_LT(stopped.get(), std::chrono::milliseconds(1900));
}

// A std::vector of servers destroys the coordinating task's before the others.
TEST(Server, OneThreadMayEndThemInAnyOrder) {
  Sockets sockets(4);
  const auto& at = sockets.addresses;
  const train::ClusterSpec spec({{"worker", {at[0], at[1]}}, {"ps", {at[2], at[3]}}});
  std::vector<std::unique_ptr<Server>> servers;
  for (size_t i = 0; i < at.size(); ++i) {
    servers.push_back(
        std::make_unique<Server>(spec, ServerOptions{.job_name = i < 2 ? "worker" : "ps",
                                                     .task_index = static_cast<int>(i % 2),
                                                     .listen_fd = sockets.sockets[i].release()}));
  }
  servers.back()->coordination().wait_for_start();
  const auto begin = std::chrono::steady_clock::now();
  for (auto& server : servers) server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1900));
}

TEST(Server, AReconnectMayTakeLongerOverANetwork) {
  const auto grace_of = [](const std::string& address, const ServerOptions& options) {
    return internal::heartbeat_of(
               train::ClusterSpec({{"worker", {"127.0.0.1:1", "localhost:2", address}}}), options)
        .reconnect_grace;
  };
  using std::chrono::milliseconds;
  EXPECT_EQ(grace_of("[::1]:3", {}), milliseconds(30));
  EXPECT_EQ(grace_of("10.0.0.1:3", {}), milliseconds(300));
  EXPECT_EQ(grace_of("10.0.0.1:3", {.reconnect_grace = milliseconds(70)}), milliseconds(70));
  EXPECT_EQ(grace_of("10.0.0.1:3", {.heartbeat_timeout = milliseconds(200)}), milliseconds(200));
}

// As torchrun and mpirun know a cluster.
class RendezvousResolver : public cluster_resolver::ClusterResolver {
 public:
  explicit RendezvousResolver(cluster_resolver::Rendezvous rendezvous)
      : rendezvous_(std::move(rendezvous)) {}
  train::ClusterSpec cluster_spec() const override { return {}; }
  std::optional<cluster_resolver::Rendezvous> rendezvous() const override { return rendezvous_; }
  std::string source() const override { return "the test"; }

 private:
  const cluster_resolver::Rendezvous rendezvous_;
};

// A method that only tasks of the same generation may call.
class FencedService : public internal::rpc::Service {
 public:
  std::string_view name() const override { return "fenced"; }
  std::span<const internal::rpc::MethodSpec> methods() const override { return kMethods; }
  void handle(size_t, std::unique_ptr<internal::rpc::Call> call) override {
    call->reply({.control = to_string(call->caller().task)});
  }

 private:
  static constexpr internal::rpc::MethodSpec kMethods[] = {
      {.name = "who", .callers = internal::rpc::kEveryTask}};
};

// The answer, once the other one has the news as well.
std::string ask(internal::rpc::Channel& channel) {
  const auto end = std::chrono::steady_clock::now() + seconds(20);
  for (;;) {
    try {
      return channel.call("fenced/who", {}, kCall).control;
    } catch (const UnavailableError& error) {
      const bool is_behind = std::string(error.what()).find("is behind") != std::string::npos;
      if (!is_behind || std::chrono::steady_clock::now() > end) throw;
    }
  }
}

TEST(Server, TasksWithARendezvousFindEachOther) {
  Sockets sockets(1);
  const std::string address = sockets.addresses[0];
  ServerOptions everywhere{.bind_address = "0.0.0.0"};
  everywhere.credentials.insecure = true;
  std::promise<void> all_done;
  const std::shared_future<void> end = all_done.get_future().share();
  std::atomic<int> done{0};
  std::vector<std::future<void>> tasks;
  for (int rank = 0; rank < 3; ++rank) {
    ServerOptions options = rank == 0 ? ServerOptions{} : everywhere;
    if (rank == 0) options.listen_fd = sockets.sockets[0].release();
    if (rank == 1) options.bind_address = "";
    tasks.push_back(std::async(std::launch::async, [&, rank, options] {
      Server server(RendezvousResolver({.address = address, .rank = rank, .size = 3}), options);
      server.core().add(std::make_shared<FencedService>());
      const auto coordinator = server.core().channel({"worker", 0});
      EXPECT_EQ(server.coordination().wait_for_start().generation, 1);
      server.coordination().barrier("all have their services");
      // At once, without waiting for anything more.
      EXPECT_EQ(server.cluster_spec().tasks().size(), 3U);
      EXPECT_EQ(server.cluster_spec().task_address("worker", 0), address);
      EXPECT_THAT(server.cluster_spec().task_address("worker", 2),
                  ::testing::StartsWith("127.0.0.1:"));
      for (int other = 0; other < 3; ++other) {
        EXPECT_EQ(ask(*server.core().channel({"worker", other})),
                  "/job:worker/task:" + std::to_string(rank));
      }
      EXPECT_EQ(server.core().channel({"worker", 0}), coordinator);
      if (++done == 3) all_done.set_value();
      EXPECT_EQ(end.wait_for(seconds(60)), std::future_status::ready);
    }));
  }
  for (auto& task : tasks) task.get();
}

TEST(Server, APortThatIsTakenIsNamedWithItsOwner) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  const auto start = [&] { Server(spec, {.job_name = "worker"}); };
  expect_error<FailedPreconditionError>(start, "cannot listen at " + sockets.addresses[0] +
                                                   ": the port is taken by process " +
                                                   std::to_string(::getpid()));
  sockets.sockets[0].reset();
  start();
}

TEST(Server, RefusesWhatCannotRun) {
  expect_error<InvalidArgumentError>([] { Server(train::ClusterSpec(), {.job_name = "worker"}); },
                                     "ClusterSpec");
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:1"}}});
  expect_error<InvalidArgumentError>([&] { Server(spec, {.job_name = "worker", .task_index = 1}); },
                                     "worker");
  expect_error<InvalidArgumentError>([&] { Server(spec, {.job_name = "ps"}); }, "ps");
  const train::ClusterSpec open({{"worker", {"0.0.0.0:0"}}});
  expect_error<InvalidArgumentError>([&] { Server(open, {.job_name = "worker"}); }, "worker");
  const std::chrono::milliseconds negative(-5);
  expect_error<InvalidArgumentError>(
      [&] { Server(spec, {.job_name = "worker", .start_timeout = negative}); },
      "ServerOptions: start_timeout is -5 ms");
  expect_error<InvalidArgumentError>(
      [&] { Server(spec, {.job_name = "worker", .ps_lease = negative}); },
      "ServerOptions: ps_lease is -5 ms");
  // No socket is opened before: the port is taken, and nobody says so.
  Sockets taken(1);
  const train::ClusterSpec there({{"worker", {taken.addresses[0]}}});
  expect_error<InvalidArgumentError>(
      [&] { Server(there, {.job_name = "worker", .metrics_port = 65536}); },
      "metrics_port is 65536");
  expect_error<InvalidArgumentError>(
      [&] { Server(there, {.job_name = "worker", .heartbeat_interval = seconds(0)}); },
      "heartbeat interval is 0 ms");
}

// Nobody else gets the port; whoever reuses addresses, as servers do, may listen at it.
int reserved_port(UniqueFd& socket) {
  socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

TEST(Server, AFirstTaskThatMayNotBeTalkedToIsAnError) {
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {"192.0.2.1:2222", sockets.addresses[0]}}});
  expect_error<FailedPreconditionError>(
      [&] {
        Server server(
            spec,
            {.job_name = "worker", .task_index = 1, .listen_fd = sockets.sockets[0].release()});
      },
      "192.0.2.1:2222");
}

TEST(Server, ListensWhereOthersReachItOnlyWithCredentials) {
  UniqueFd reserved;
  const std::string port = std::to_string(reserved_port(reserved));
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:" + port}}});
  const ServerOptions anywhere{.job_name = "worker", .bind_address = "0.0.0.0"};
  expect_error<FailedPreconditionError>([&] { Server(spec, anywhere); },
                                        "nothing would prove who calls");
  ServerOptions insecure = anywhere;
  insecure.credentials.insecure = true;
  Server server(spec, insecure);
  EXPECT_EQ(server.address(), "0.0.0.0:" + port);
}

TEST(Server, OneThatCannotStartIsNoneOfThisProcess) {
  UniqueFd reserved;
  const std::string port = std::to_string(reserved_port(reserved));
  const train::ClusterSpec spec({{"worker", {"127.0.0.1:" + port}}});
  expect_error<FailedPreconditionError>(
      [&] { Server(spec, {.job_name = "worker", .bind_address = "0.0.0.0"}); },
      "nothing would prove who calls");
  int servers = 0;
  const auto owner = std::make_shared<int>();
  const auto attachment =
      internal::attach_to_servers(owner, [&](internal::ServerCore&) { ++servers; });
  EXPECT_EQ(servers, 0);
}

// The answer to one request.
std::string http(int port, const std::string& request) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  std::string all;
  char bytes[4096];
  for (ssize_t size; (size = ::recv(socket.get(), bytes, sizeof bytes, 0)) > 0;) {
    all.append(bytes, static_cast<size_t>(size));
  }
  return all;
}

TEST(Server, AnswersPrometheusWhereItIsAskedTo) {
  UniqueFd reserved;
  const int port = reserved_port(reserved);
  Sockets sockets(1);
  const train::ClusterSpec spec({{"worker", {sockets.addresses[0]}}});
  const auto options = [&](int metrics_port) {
    return ServerOptions{.job_name = "worker",
                         .listen_fd = ::dup(sockets.sockets[0].get()),
                         .metrics_port = metrics_port};
  };
  expect_error<InvalidArgumentError>([&] { Server(spec, options(65536)); },
                                     "metrics_port is 65536");
  {
    Server server(spec, options(port));
    server.coordination().wait_for_start();
    const std::string answer = http(port, "GET /metrics HTTP/1.1\r\n\r\n");
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_task_up{job=\"worker\",index=\"0\"} 1\n"));
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_cluster_generation 1\n"));
    EXPECT_THAT(answer, ::testing::HasSubstr("cohort_stale_calls_refused_total 0\n"));
    expect_error<FailedPreconditionError>([&] { Server(spec, options(port)); },
                                          "the port is taken");
    server.stop();
  }
}

}  // namespace
}  // namespace cohort::distribute
