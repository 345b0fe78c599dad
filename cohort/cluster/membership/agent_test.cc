#include "cohort/cluster/membership/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/simulation/direct_call.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::membership {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Agents that reach their service without a network, so that calls that wait have their answer at
// once or never.
class MembershipAgentTest : public testing::Test {
 protected:
  void begin(int workers) {
    CoordinationOptions options;
    options.incarnation = 99;
    options.self = {"worker", 0};
    for (int i = 0; i < workers; ++i) options.roster.tasks[{"worker", i}] = "";
    options.roster.heartbeat = kTestHeartbeat;
    options.cluster_spec = "rendezvous of tasks";
    service_ = std::make_unique<CoordinationService>(clock_, std::move(options));
  }
  AgentOptions options_of(int worker) {
    AgentOptions options{.task = {"worker", worker}, .incarnation = 10 + uint64_t(worker)};
    options.address = "10.0.0." + std::to_string(worker) + ":5";
    options.cluster_spec = "rendezvous of tasks";
    options.heartbeat = kTestHeartbeat;
    options.start_timeout = seconds(30);
    options.on_error = [this](std::exception_ptr error) {
      errors_.push_back(record_error(error).message);
    };
    options.log = [this](const std::string& line) { lines_.push_back(line); };
    return options;
  }
  std::unique_ptr<MembershipAgent> agent(AgentOptions options, rpc::Service* service) {
    const rpc::Caller caller{.task = options.task, .incarnation = options.incarnation};
    auto agent = std::make_unique<MembershipAgent>(
        clock_, std::make_shared<DirectChannel>(service, caller), std::move(options));
    agent->start();
    return agent;
  }
  void pass(std::chrono::nanoseconds time) { time_.run_until(time_.now() + time); }

  SimulatedTime time_;
  SimulatedProcess clock_{time_, 1.0, seconds(1000)};
  std::vector<std::string> errors_;
  std::vector<std::string> lines_;
  std::unique_ptr<CoordinationService> service_;
};

TEST_F(MembershipAgentTest, RendezvousCompletesTheAddresses) {
  begin(2);
  const auto first = agent(options_of(0), service_.get());
  EXPECT_EQ(first->generation(), 0);
  const auto second = agent(options_of(1), service_.get());
  EXPECT_EQ(first->wait_for_start()->find({"worker", 1})->address, "10.0.0.1:5");
  EXPECT_EQ(second->wait_for_start()->find({"worker", 0})->address, "10.0.0.0:5");
  EXPECT_EQ(first->generation(), 1);
  EXPECT_EQ(first->wait_for_group(1, seconds(0))->generation, 1);
}

TEST_F(MembershipAgentTest, StoresAndWaitsByNames) {
  begin(1);
  const auto alone = agent(options_of(0), service_.get());
  alone->set("a/1", "one");
  EXPECT_EQ(alone->get("a/1", seconds(1)), "one");
  EXPECT_EQ(alone->find("a/2"), std::nullopt);
  EXPECT_EQ(alone->add("n", 3), 3);
  EXPECT_EQ(alone->add("n", 4), 7);
  EXPECT_TRUE(alone->compare_and_set("n", "7", "x"));
  EXPECT_FALSE(alone->compare_and_set("n", std::nullopt, "y"));
  EXPECT_THAT(alone->list("a/"), ElementsAre("a/1"));
  EXPECT_TRUE(alone->remove("n"));
  alone->barrier("b");
  expect_error<InvalidArgumentError>([&] { alone->set("", "x"); }, "a key is empty");
  expect_error<InvalidArgumentError>([&] { alone->barrier("\xff"); }, "is not UTF-8");
  EXPECT_TRUE(alone->declare({{"functions", "step"}}).empty());
  expect_error<FailedPreconditionError>(
      [&] {
        alone->declare({{"functions", "other"}});
      },
      "'step' there, 'other' here");
}

TEST_F(MembershipAgentTest, Row28SaysWhichServiceItCannotReach) {
  const auto lonely = agent(options_of(1), nullptr);
  pass(seconds(13));
  EXPECT_THAT(lines_, Contains(HasSubstr("for the coordination service of /job:chief/task:0 at "
                                         "h0:2222: connection refused")));
  EXPECT_EQ(lonely->error(), nullptr);
  pass(seconds(25));
  expect_error<UnavailableError>([&] { lonely->wait_for_start(); },
                                 "has not accepted /job:worker/task:1 within 30 s");
  EXPECT_EQ(errors_.size(), 1u);
  expect_error<UnavailableError>([&] { lonely->set("k", "v"); }, "has not accepted");
}

TEST_F(MembershipAgentTest, ARefusalIsFinal) {
  begin(2);
  AgentOptions options = options_of(1);
  options.cluster_spec = "another";
  const auto other = agent(std::move(options), service_.get());
  expect_error<FailedPreconditionError>([&] { other->wait_for_start(); }, "cluster specs differ");
}

TEST_F(MembershipAgentTest, HearsOfWhoIsLostAndOfWhatOthersReport) {
  begin(3);
  const auto first = agent(options_of(0), service_.get());
  const auto second = agent(options_of(1), service_.get());
  const auto third = agent(options_of(2), service_.get());
  second->report(rpc::make_error(Code::kResourceExhausted, "out of memory", "/job:worker/task:1",
                                 {.phase = "step", .step = 4}));
  EXPECT_THAT(errors_, ElementsAre("out of memory", "out of memory"));
  errors_.clear();
  second->report(make_error(Code::kDataLoss, "record 7 is damaged"), seconds(1));
  EXPECT_EQ(errors_.size(), 2u);
  errors_.clear();
  third->stop();
  service_->process_gone({"worker", 2}, 12);
  EXPECT_THAT(errors_, ElementsAre(HasSubstr("lost /job:worker/task:2"),
                                   HasSubstr("lost /job:worker/task:2")));
  EXPECT_EQ(first->generation(), 2);
  expect_error<DeadlineExceededError>([&] { first->wait_for_group(1, milliseconds(1)); },
                                      "missing: /job:worker/task:2 (10.0.0.2:5, lost)");
  errors_.clear();
  second->leave("after step 9");
  EXPECT_TRUE(errors_.empty());  // in good order
  EXPECT_EQ(first->view()->find({"worker", 1})->state, TaskState::kLeft);
}

// Of a task that has failed early, others would wait for what cannot come.
TEST_F(MembershipAgentTest, WhatIsReportedBeforeTheStartIsHeardToo) {
  begin(3);
  const auto first = agent(options_of(0), service_.get());
  const auto second = agent(options_of(1), service_.get());
  EXPECT_EQ(first->wait_for_start(milliseconds(0)), nullptr);
  second->report(make_error(Code::kDataLoss, "record 7 is damaged"));
  EXPECT_THAT(errors_, ElementsAre("record 7 is damaged"));
  const auto third = agent(options_of(2), service_.get());
  EXPECT_EQ(first->wait_for_start(milliseconds(0))->generation, 1);
}

TEST_F(MembershipAgentTest, RefusesCallsThatAreNotOfItsGroup) {
  begin(2);
  const auto first = agent(options_of(0), service_.get());
  const auto second = agent(options_of(1), service_.get());
  first->check({.task = {"worker", 1}, .incarnation = 11, .generation = 1});
  expect_error<AbortedError>(
      [&] {
        first->check({.task = {"worker", 1}, .incarnation = 12, .generation = 1});
      },
      "fenced, generation 1");
  expect_error<AbortedError>(
      [&] {
        first->check({.task = {"worker", 1}, .incarnation = 11, .generation = 0});
      },
      "in generation 0");
  EXPECT_EQ(first->stale_refused(), 2);
}

TEST_F(MembershipAgentTest, AServiceThatFallsSilentIsNamed) {
  begin(1);
  const auto alone = agent(options_of(0), service_.get());
  service_->stop();  // answers Cancelled from now on
  pass(seconds(3));
  ASSERT_EQ(errors_.size(), 1u);
  EXPECT_THAT(errors_[0], HasSubstr("lost the coordination service of /job:chief/task:0"));
  EXPECT_EQ(alone->generation(), 0);
}

// Until it is silent: no answer comes from then on.
class SilentChannel final : public rpc::Channel {
 public:
  SilentChannel(rpc::Clock& clock, std::shared_ptr<rpc::Channel> channel)
      : clock_(clock), channel_(std::move(channel)) {}
  const TaskId& peer() const override { return channel_->peer(); }
  const std::string& address() const override { return channel_->address(); }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override {
    const auto waiting = std::make_shared<std::function<void(rpc::CallResult)>>(std::move(done));
    const auto answer = [waiting](rpc::CallResult result) {
      if (const auto call = std::exchange(*waiting, nullptr)) call(std::move(result));
    };
    clock_.call_at(clock_.now() + options.timeout, [answer] {
      answer({.error = make_error(Code::kDeadlineExceeded, "silence"), .reply = {}});
    });
    if (*silent_) return;
    channel_->start(method, std::move(request), options,
                    [answer, silent = silent_](rpc::CallResult result) {
                      if (!*silent) answer(std::move(result));
                    });
  }
  void be_silent() { *silent_ = true; }

 private:
  rpc::Clock& clock_;
  const std::shared_ptr<rpc::Channel> channel_;
  const std::shared_ptr<bool> silent_ = std::make_shared<bool>(false);
};

// Loses the answer to the next addition when told to.
class ForgetfulChannel final : public rpc::Channel {
 public:
  explicit ForgetfulChannel(std::shared_ptr<rpc::Channel> channel) : channel_(std::move(channel)) {}
  const TaskId& peer() const override { return channel_->peer(); }
  const std::string& address() const override { return channel_->address(); }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override {
    if (method != "membership/add" || !std::exchange(loses_next, false)) {
      return channel_->start(method, std::move(request), options, std::move(done));
    }
    channel_->start(method, std::move(request), options, [](const rpc::CallResult&) {});
    done({.error = make_error(Code::kUnavailable, "the connection broke"), .reply = {}});
  }

  bool loses_next = false;

 private:
  const std::shared_ptr<rpc::Channel> channel_;
};

TEST_F(MembershipAgentTest, AChangeIsMadeOnceHoweverManyOthersComeBeforeItsRepetition) {
  begin(1);
  AgentOptions options = options_of(0);
  const rpc::Caller caller{.task = options.task, .incarnation = options.incarnation};
  const auto channel =
      std::make_shared<ForgetfulChannel>(std::make_shared<DirectChannel>(service_.get(), caller));
  MembershipAgent alone(clock_, channel, std::move(options));
  alone.start();
  alone.wait_for_start();
  channel->loses_next = true;
  int64_t sum = 0;
  alone.start_store("add", {.key = "n", .delta = 1}, seconds(5),
                    [&](const std::exception_ptr& error, const StoreReply& reply) {
                      EXPECT_EQ(error, nullptr);
                      sum = reply.number;
                    });
  for (int i = 0; i < 200; ++i) alone.add("n", 1);
  EXPECT_EQ(sum, 0);
  pass(seconds(1));
  EXPECT_EQ(sum, 1);
  EXPECT_EQ(alone.get("n", seconds(1)), "201");
}

// Such as a ps task of a coordinator that is gone.
TEST_F(MembershipAgentTest, WhoWaitsForALostServiceLeavesWithoutWaiting) {
  bool has_left = false;
  begin(1);
  AgentOptions options = options_of(0);
  options.on_service_lost = OnServiceLost::kWait;
  const rpc::Caller caller{.task = options.task, .incarnation = options.incarnation};
  const auto channel = std::make_shared<SilentChannel>(
      clock_, std::make_shared<DirectChannel>(service_.get(), caller));
  MembershipAgent alone(clock_, channel, std::move(options));
  alone.start();
  alone.wait_for_start();
  channel->be_silent();
  pass(seconds(10));
  EXPECT_THAT(lines_, Contains(HasSubstr("waiting for it for 60 s")));
  alone.start_leave("", seconds(2), [&] { has_left = true; });
  pass(milliseconds(50));
  EXPECT_TRUE(has_left);
}

TEST_F(MembershipAgentTest, ALeaveThatTheServiceRefusesEndsSoon) {
  bool has_left = false;
  begin(1);
  AgentOptions options = options_of(0);
  options.on_service_lost = OnServiceLost::kWait;
  const auto alone = agent(std::move(options), service_.get());
  alone->wait_for_start();
  service_->stop();  // answers Cancelled from now on
  alone->start_leave("", seconds(2), [&] { has_left = true; });
  pass(milliseconds(200));
  EXPECT_TRUE(has_left);
}

TEST_F(MembershipAgentTest, ACallerThatKnowsMoreIsToCallAgain) {
  begin(2);
  const auto first = agent(options_of(0), service_.get());
  const auto second = agent(options_of(1), service_.get());
  expect_error<UnavailableError>(
      [&] {
        first->check({.task = {"worker", 1}, .incarnation = 11, .generation = 2});
      },
      "/job:worker/task:0 is behind: it is in generation 1, /job:worker/task:1 in 2");
  EXPECT_EQ(first->stale_refused(), 0);
  first->stop();
  expect_error<AbortedError>(
      [&] {
        first->check({.task = {"worker", 1}, .incarnation = 11, .generation = 2});
      },
      "fenced, generation 0");
}

TEST_F(MembershipAgentTest, TheGenerationIsKnownBeforeAnyCallback) {
  begin(3);
  std::vector<int64_t> generations;
  AgentOptions options = options_of(0);
  std::vector<int64_t> in_callback;
  options.on_generation = [&](int64_t generation, const ViewPtr& view) {
    EXPECT_EQ(generation, view ? view->generation : 0);
    generations.push_back(generation);
  };
  options.on_error = [&](const std::exception_ptr&) {
    // While this one runs no other callback can: what a caller says of itself must not wait for it.
    if (in_callback.empty()) service_->process_gone({"worker", 2}, 12);
    in_callback.push_back(generations.back());
  };
  const auto first = agent(std::move(options), service_.get());
  const auto second = agent(options_of(1), service_.get());
  const auto third = agent(options_of(2), service_.get());
  second->report(make_error(Code::kInternal, "an error"));
  EXPECT_THAT(in_callback, ElementsAre(2, 2));
  EXPECT_FALSE(first->in_callback());
  first->stop();
  EXPECT_EQ(generations.back(), 0);
}

TEST_F(MembershipAgentTest, NeedsAnIncarnation) {
  expect_error<InvalidArgumentError>(
      [&] {
        MembershipAgent(clock_, nullptr, {.task = {"worker", 0}});
      },
      "an incarnation");
}

}  // namespace
}  // namespace cohort::internal::membership
