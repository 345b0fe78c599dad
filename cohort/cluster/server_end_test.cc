// What ends a server, and how its tasks learn of errors before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/cluster/testing_sockets.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_fork.h"

namespace cohort::distribute {
namespace {

using internal::expect_error;
using std::chrono::seconds;

TEST(ServerEnd, OnlyTheCoordinatorOfTheClusterEndsATask) {
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
    channel->call("server/stop", {.control = "done"}, {.timeout = seconds(20)});
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

// The one task of its cluster.
struct Alone {
  Sockets sockets{1};
  train::ClusterSpec spec{{{"worker", {sockets.addresses[0]}}}};
  Server server{spec, {.job_name = "worker", .listen_fd = sockets.sockets[0].release()}};
};

TEST(ServerEnd, AChildOfForkThatReleasesItsCopyDoesNotEndIt) {
  std::optional<Alone> alone(std::in_place);
  alone->server.coordination().wait_for_start();
  auto joined = std::async(std::launch::async, [&] { return alone->server.join(); });
  EXPECT_EQ(internal::in_forked_child([&] {
              expect_error<FailedPreconditionError>([&] { alone->server.join(); },
                                                    "a server was made before this process");
              alone.reset();
              return std::string(::testing::Test::HasFailure() ? "no error" : "released");
            }),
            "released");
  EXPECT_EQ(joined.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  alone->server.stop();
  EXPECT_EQ(joined.get(), 0);
}

TEST(ServerEnd, SignalsEndJoin) {
  Alone alone;
  const auto default_handler = std::signal(SIGTERM, SIG_IGN);  // until join() takes it
  auto joined = std::async(std::launch::async, [&] { return alone.server.join(); });
  while (joined.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    ::kill(::getpid(), SIGTERM);
  }
  EXPECT_EQ(joined.get(), 143);
  std::signal(SIGTERM, default_handler);
}

TEST(ServerEnd, WhatMadeItGiveUpIsThrownByJoin) {
  Alone alone;
  alone.server.core().request_stop(std::make_exception_ptr(AbortedError("another took its place")));
  expect_error<AbortedError>([&] { alone.server.join(); }, "another took its place");
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

TEST(ServerEnd, AHandlerOfErrorsMayStopIt) {
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

TEST(ServerEnd, AHandlerThatThrowsGetsTheNextError) {
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

TEST(ServerEnd, WhatEndedTheMembershipIsThrownAlsoIfAnotherErrorWasUnderWay) {
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

TEST(ServerEnd, ASignalDoesNotCutTheEndShort) {
  const auto before = std::signal(SIGTERM, [](int) { ++unwatched_signals; });
  {
    Alone alone;
    alone.server.core().add(std::make_shared<LateSignal>());
    auto joined = std::async(std::launch::async, [&] { return alone.server.join(); });
    alone.server.core().request_stop("");
    EXPECT_EQ(joined.get(), 128 + SIGTERM);
  }
  EXPECT_EQ(unwatched_signals, 0);
  std::signal(SIGTERM, before);
}

TEST(ServerEnd, TheCoordinatingTaskEndsOnceTheOthersHaveLeft) {
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
TEST(ServerEnd, OneThreadMayEndThemInAnyOrder) {
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

}  // namespace
}  // namespace cohort::distribute
