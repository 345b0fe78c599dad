// A worker of a cluster in this process, to which closures come in any order.
#include "cohort/parameter_server/closures/closure_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <mutex>
#include <string>

#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using internal::RunClosure;
using internal::SessionId;
using ::testing::ElementsAre;

class ClosureServiceTest : public ::testing::Test {
 protected:
  ClosureServiceTest() {
    strategy_.function("note", [this](int64_t number) {
      const std::lock_guard lock(mutex_);
      ran_.push_back(number);
      return number;
    });
    strategy_.function("hold", [this](int64_t number) {
      gate_.pass();
      return number;
    });
    core_->cluster()->lead();
  }
  // A new session.
  SessionId take() {
    const SessionId session = internal::session_id(core_->cluster()->generation(), ++last_session_);
    worker_->call("leadership/take",
                  encode(internal::LeaderClaim{.generation = core_->cluster()->generation(),
                                               .session = session}),
                  {.timeout = kPatience});
    return session;
  }
  std::future<std::exception_ptr> start(const char* method, SessionId session, uint64_t sequence,
                                        const std::string& function = "note") {
    auto promise = std::make_shared<std::promise<std::exception_ptr>>();
    std::future<std::exception_ptr> error = promise->get_future();
    const bool is_skipped = method == std::string("closures/skip");
    const Structure number =
        is_skipped ? Structure::make_tuple({}) : tuple(static_cast<int64_t>(sequence));
    worker_->start(method,
                   encode(RunClosure{.function = function,
                                     .id = 100 + sequence,
                                     .session = session,
                                     .arguments = number,
                                     .sequence = sequence}),
                   {.timeout = kPatience}, [promise](const internal::rpc::CallResult& result) {
                     promise->set_value(result.error);
                   });
    return error;
  }
  std::vector<int64_t> ran() {
    const std::lock_guard lock(mutex_);
    return ran_;
  }

  static constexpr std::chrono::seconds kPatience{20};
  TestingCluster cluster_{1, 1};
  const ParameterServerStrategy strategy_{cluster_.resolver()};
  const std::shared_ptr<internal::ParameterServerCore> core_ = strategy_.parameter_server_core();
  const std::shared_ptr<internal::rpc::Channel> worker_ = core_->cluster()->channel({"worker", 0});
  Gate gate_;
  uint64_t last_session_ = 0;
  std::mutex mutex_;
  std::vector<int64_t> ran_;  // guarded by mutex_
};

TEST_F(ClosureServiceTest, ClosuresRunInTheirOrderNotAsTheyCome) {
  const SessionId session = take();
  auto third = start("closures/run", session, 2);
  auto second = start("closures/run", session, 1);
  auto first = start("closures/run", session, 0);
  for (auto* one : {&first, &second, &third}) EXPECT_EQ(one->get(), nullptr);
  EXPECT_THAT(ran(), ElementsAre(0, 1, 2));
}

TEST_F(ClosureServiceTest, ClosuresBehindOneThatDoesNotComeGoOn) {
  const SessionId session = take();
  auto second = start("closures/run", session, 1);
  EXPECT_EQ(start("closures/skip", session, 0).get(), nullptr);
  EXPECT_EQ(second.get(), nullptr);
  EXPECT_THAT(ran(), ElementsAre(1));
}

TEST_F(ClosureServiceTest, ANewSessionBeginsAnew) {
  const SessionId old = take();
  auto early = start("closures/run", old, 5);
  const SessionId session = take();
  EXPECT_EQ(start("closures/run", session, 0).get(), nullptr);
  const std::exception_ptr refused = early.get();
  ASSERT_NE(refused, nullptr);
  EXPECT_EQ(internal::record_error(refused).code, Code::kAborted);
  EXPECT_THAT(ran(), ElementsAre(0));
}

TEST_F(ClosureServiceTest, IsIdleWhenWhatItRanHasEnded) {
  internal::ClosureService* task = nullptr;
  internal::with_server(core_->cluster()->spec(), {"worker", 0}, [&](internal::ServerCore& server) {
    task = server.kept<internal::ClosureService>();
  });
  ASSERT_NE(task, nullptr);
  const auto now = [] { return std::chrono::steady_clock::now(); };
  EXPECT_TRUE(task->wait_until_idle(now() + kPatience));
  auto held = start("closures/run", take(), 0, "hold");
  ASSERT_TRUE(gate_.wait_for(1));
  EXPECT_FALSE(task->wait_until_idle(now()));
  gate_.open();
  EXPECT_TRUE(task->wait_until_idle(now() + kPatience));
  EXPECT_EQ(held.get(), nullptr);
}

}  // namespace
}  // namespace cohort::distribute
