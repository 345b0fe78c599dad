#include "cohort/cluster/elastic/elastic_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/elastic/testing_elastic.h"
#include "cohort/cluster/membership/coordination_service.h"
#include "cohort/cluster/membership/simulation/direct_call.h"
#include "cohort/cluster/membership/simulation/process.h"
#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::elastic {
namespace {

using membership::AgentOptions;
using membership::CoordinationOptions;
using membership::CoordinationService;
using membership::MembershipAgent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<int> indices(const Record& record) {
  std::vector<int> found;
  for (const RecordMember& one : record.members) found.push_back(one.task.index);
  return found;
}

std::unique_ptr<CoordinationService> make_service(rpc::Clock& clock, uint64_t incarnation,
                                                  int workers) {
  CoordinationOptions options;
  options.incarnation = incarnation;
  options.self = {"worker", 0};
  for (int i = 0; i < workers; ++i) options.roster.tasks[worker(i)] = "";
  options.roster.heartbeat = membership::kTestHeartbeat;
  options.cluster_spec = "rendezvous of tasks";
  return std::make_unique<CoordinationService>(clock, std::move(options));
}

AgentOptions agent_options(int index, uint64_t incarnation) {
  AgentOptions options{.task = worker(index), .incarnation = incarnation};
  options.address = "10.0.0." + std::to_string(index) + ":5";
  options.cluster_spec = "rendezvous of tasks";
  options.heartbeat = membership::kTestHeartbeat;
  options.on_service_lost = membership::OnServiceLost::kWait;
  return options;
}

// To the service that there is at the time.
class ServiceChannel final : public rpc::Channel {
 public:
  ServiceChannel(const std::unique_ptr<CoordinationService>& service, rpc::Caller caller)
      : service_(service), caller_(std::move(caller)) {}
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions& options,
             std::function<void(rpc::CallResult)> done) override {
    membership::DirectChannel(service_.get(), caller_)
        .start(method, std::move(request), options, std::move(done));
  }

 private:
  const std::unique_ptr<CoordinationService>& service_;
  const rpc::Caller caller_;
  const TaskId peer_{"worker", 0};
  const std::string address_ = "h0:2222";
};

struct Task {
  std::unique_ptr<MembershipAgent> agent;
  std::unique_ptr<ElasticGroup> group;
  std::vector<Record> records;
  std::vector<std::string> errors;

  void form(Standing mine) {
    mine.reached = std::max(mine.reached, mine.step);
    group->start_form(mine, [this](const std::exception_ptr& error, const Record& record) {
      error ? errors.push_back(record_error(error).message) : records.push_back(record);
    });
  }
};

// Tasks in one process, on simulated time.
class ElasticGroupTest : public testing::Test {
 protected:
  void begin(int workers, int min_tasks = 1) {
    workers_ = workers;
    options_.group = {.name = "g", .min_tasks = min_tasks};
    options_.log = [this](const std::string& line) { lines_.push_back(line); };
    service_ = make_service(clock_, 99, workers);
    for (int i = 0; i < workers; ++i) start(i);
    for (const auto& task : tasks_) task->agent->wait_for_start();
  }
  Task& start(int index) {
    if (tasks_.size() <= size_t(index)) tasks_.resize(size_t(index) + 1);
    if (tasks_[size_t(index)]) ended_.push_back(std::move(tasks_[size_t(index)]));
    AgentOptions options = agent_options(index, ++incarnations_);
    const rpc::Caller caller{.task = options.task, .incarnation = options.incarnation};
    auto task = std::make_unique<Task>();
    task->agent = std::make_unique<MembershipAgent>(
        clock_, std::make_shared<ServiceChannel>(service_, caller), std::move(options));
    task->agent->start();
    task->group = std::make_unique<ElasticGroup>(*task->agent, options_);
    tasks_[size_t(index)] = std::move(task);
    return *tasks_[size_t(index)];
  }
  void kill(int index) {
    Task& task = *tasks_[size_t(index)];
    const uint64_t incarnation = task.agent->options().incarnation;
    task.agent->stop();
    service_->process_gone(worker(index), incarnation);
  }
  Task& task(int index) { return *tasks_[size_t(index)]; }
  void form_all(int64_t step = kNoStep) {
    for (const auto& one : tasks_) one->form({.step = step, .program = "p"});
    pass(milliseconds(100));
  }
  void pass(std::chrono::nanoseconds time) { time_.run_until(time_.now() + time); }

  membership::SimulatedTime time_;
  membership::SimulatedProcess clock_{time_, 1.0, seconds(1000)};
  ElasticOptions options_;
  int workers_ = 0;
  uint64_t incarnations_ = 10;
  std::vector<std::string> lines_;
  std::unique_ptr<CoordinationService> service_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Task>> ended_;
};

TEST_F(ElasticGroupTest, TheFirstGroupIsAllThatAreThere) {
  begin(3);
  task(2).form({.program = "p"});
  pass(seconds(5));
  EXPECT_THAT(task(2).records, IsEmpty());
  task(0).form({.program = "p"});
  task(1).form({.program = "p"});
  pass(milliseconds(50));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(task(i).records.size(), 1u) << i << " " << testing::PrintToString(task(i).errors);
    EXPECT_EQ(task(i).records[0], task(0).records[0]);
    EXPECT_FALSE(task(i).group->somebody_waits());
    EXPECT_THAT(task(i).group->lost(), IsEmpty());
    EXPECT_FALSE(task(i).group->must_form());
    EXPECT_EQ(task(i).group->current(), task(0).records[0]);
  }
  EXPECT_THAT(indices(task(0).records[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(task(0).records[0].number, 1);
}

TEST_F(ElasticGroupTest, SurvivorsGoOnFromTheLastStepThatSomebodyHas) {
  begin(4);
  form_all();
  kill(0);
  kill(2);
  EXPECT_THAT(task(1).group->lost(), ElementsAre(worker(0), worker(2)));
  EXPECT_TRUE(task(1).group->must_form());
  task(1).form({.step = 41, .reached = 42, .program = "p"});
  task(3).form({.step = 42, .program = "p"});
  pass(milliseconds(50));
  ASSERT_EQ(task(1).records.size(), 2u);
  const Record& record = task(1).records[1];
  EXPECT_EQ(record, task(3).records[1]);
  EXPECT_THAT(indices(record), ElementsAre(1, 3));
  EXPECT_EQ(record.number, 2);
  EXPECT_EQ(record.generation, task(1).agent->generation());
  EXPECT_EQ(record.step(), 42);
  EXPECT_THAT(record.holders(), ElementsAre(1));
  EXPECT_THAT(record.behind(), ElementsAre(0));
}

TEST_F(ElasticGroupTest, AComerJoinsWhenTheMembersForm) {
  begin(3);
  form_all();
  kill(1);
  task(0).form({.step = 7, .program = "p"});
  task(2).form({.step = 7, .program = "p"});
  pass(milliseconds(50));
  Task& comer = start(1);
  pass(seconds(1));
  EXPECT_FALSE(task(0).group->somebody_waits());  // it may still restore something
  comer.form({.program = "p"});
  pass(milliseconds(300));
  EXPECT_TRUE(task(0).group->somebody_waits());
  EXPECT_FALSE(task(2).group->somebody_waits());  // the first tells the others
  pass(seconds(11));
  EXPECT_THAT(lines_,
              Contains(HasSubstr("for the end of the step of /job:worker/task:0, /job:wo")));
  task(0).form({.step = 9, .program = "p"});
  task(2).form({.step = 9, .program = "p"});
  pass(milliseconds(50));
  ASSERT_EQ(comer.records.size(), 1u);
  EXPECT_THAT(indices(comer.records[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(comer.records[0].comers(), ElementsAre(1));
  EXPECT_EQ(task(0).records.back(), comer.records[0]);
  pass(seconds(2));
  EXPECT_FALSE(task(0).group->somebody_waits());
}

TEST_F(ElasticGroupTest, ALossWhileItFormsBeginsAnew) {
  begin(3);
  form_all();
  task(0).form({.step = 3, .program = "p"});
  task(2).form({.step = 3, .program = "p"});
  pass(milliseconds(200));
  EXPECT_EQ(task(0).records.size(), 1u);
  kill(1);  // it never proposed
  pass(milliseconds(50));
  ASSERT_EQ(task(0).records.size(), 2u);
  EXPECT_THAT(indices(task(0).records[1]), ElementsAre(0, 2));
  EXPECT_EQ(task(2).records[1], task(0).records[1]);
}

TEST_F(ElasticGroupTest, WhoLeavesInGoodOrderIsNoMember) {
  begin(3);
  form_all();
  task(2).group->ask_to_form();
  pass(milliseconds(300));
  EXPECT_TRUE(task(0).group->somebody_waits());
  task(0).form({.step = 3, .program = "p"});
  task(1).form({.step = 3, .program = "p"});
  task(2).form({.step = 3, .program = "p", .leaves = true});
  pass(milliseconds(50));
  EXPECT_THAT(indices(task(2).records.back()), ElementsAre(0, 1));
  EXPECT_EQ(task(2).records.back().leavers[0].task, worker(2));
  task(2).agent->leave("at step 3");
  pass(milliseconds(50));
  EXPECT_THAT(task(0).group->lost(), IsEmpty());
  EXPECT_FALSE(task(0).group->somebody_waits());
}

TEST_F(ElasticGroupTest, WhoLeavesTooFewHandsNothingOver) {
  begin(2, 2);
  form_all();
  task(0).form({.step = 3, .program = "p"});
  task(1).form({.step = 3, .program = "p", .leaves = true});
  pass(seconds(2));
  EXPECT_THAT(task(1).errors, ElementsAre(HasSubstr("needs 2 tasks, and 1 stay if "
                                                    "/job:worker/task:1 leaves")));
  EXPECT_EQ(task(0).records.size(), 1u);
}

TEST_F(ElasticGroupTest, WhoDoesNotProposeIsNamed) {
  options_.deadline = seconds(30);
  begin(2);
  form_all();
  task(0).form({.step = 3, .program = "p"});
  pass(seconds(29));
  EXPECT_THAT(lines_, Contains(HasSubstr("waiting for 20 s for /job:worker/task:1")));
  EXPECT_THAT(task(0).errors, IsEmpty());
  pass(seconds(2));
  EXPECT_THAT(task(0).errors,
              ElementsAre(HasSubstr("group 'g' has not formed within 30 s: alive, and do not ask "
                                    "for it: /job:worker/task:1")));
  // It may try again.
  form_all(3);
  EXPECT_THAT(indices(task(0).records.back()), ElementsAre(0, 1));
}

TEST_F(ElasticGroupTest, ATaskThatComesAndGoesDoesNotPutTheDeadlineOff) {
  options_.deadline = seconds(30);
  begin(3);
  form_all();
  kill(2);
  task(0).form({.step = 3, .program = "p"});
  for (int i = 0; i < 11; ++i) {
    start(2).form({.program = "p"});
    pass(seconds(2));
    kill(2);
    pass(seconds(1));
  }
  EXPECT_THAT(task(0).errors, ElementsAre(HasSubstr("/job:worker/task:1")));
}

TEST_F(ElasticGroupTest, FewerThanTheLeastWaitForMore) {
  options_.patience = seconds(60);
  begin(2, 2);
  form_all();
  kill(1);
  task(0).form({.step = 3, .program = "p"});
  pass(seconds(21));
  EXPECT_THAT(lines_, Contains(HasSubstr("waiting for 20 s for at least 2 tasks; gone: "
                                         "/job:worker/task:1 (lost)")));
  start(1).form({.program = "p"});
  pass(milliseconds(700));
  EXPECT_THAT(indices(task(0).records.back()), ElementsAre(0, 1));
  kill(1);
  task(0).form({.step = 4, .program = "p"});
  pass(seconds(61));
  EXPECT_THAT(task(0).errors, ElementsAre(HasSubstr("group 'g' needs 2 tasks, and 1 have been "
                                                    "alive for 60 s; gone: /job:worker/task:1")));
}

TEST_F(ElasticGroupTest, AnotherProgramIsRefusedByName) {
  begin(3);
  form_all();
  kill(1);
  start(1).form({.program = "another"});
  pass(milliseconds(100));
  EXPECT_THAT(task(1).errors,
              ElementsAre(HasSubstr("group 'g' does not take /job:worker/task:1: its program is "
                                    "'another', that of the group is 'p'")));
  EXPECT_FALSE(task(0).group->somebody_waits());
  task(0).form({.step = 1, .program = "p"});
  task(2).form({.step = 1, .program = "p"});
  pass(milliseconds(100));
  EXPECT_THAT(indices(task(0).records.back()), ElementsAre(0, 2));
}

TEST_F(ElasticGroupTest, AtTheStartTheProgramOfTheFirstCounts) {
  begin(3);
  task(1).form({.program = "q"});
  task(2).form({.program = "p"});
  task(0).form({.program = "p"});
  pass(seconds(1));
  EXPECT_THAT(indices(task(0).records.back()), ElementsAre(0, 2));
  EXPECT_THAT(task(1).errors, ElementsAre(HasSubstr("does not take /job:worker/task:1")));
}

TEST_F(ElasticGroupTest, ANewServiceGoesOnFromWhatTheTasksKnow) {
  begin(3);
  form_all();
  kill(2);
  task(0).form({.step = 5, .program = "p"});
  task(1).form({.step = 5, .program = "p"});
  pass(milliseconds(50));
  service_->stop();
  service_ = make_service(clock_, 77, 3);
  start(2).form({.program = "p"});
  pass(seconds(3));
  EXPECT_EQ(task(0).agent->view()->term, 2);
  EXPECT_TRUE(task(0).group->must_form());
  EXPECT_THAT(task(2).records, IsEmpty());  // the others have not asked for it
  task(1).form({.step = 5, .reached = 6, .program = "p"});
  task(0).form({.step = 6, .program = "p"});
  pass(milliseconds(300));
  const Record& record = task(0).records.back();
  EXPECT_THAT(indices(record), ElementsAre(0, 1, 2));
  EXPECT_EQ(record.step(), 6);
  EXPECT_GT(record.number, task(0).records[1].number);
  EXPECT_EQ(task(1).records.back(), record);
  EXPECT_EQ(task(2).records.back(), record);
}

TEST_F(ElasticGroupTest, WhatEndsTheMembershipEndsIt) {
  begin(2);
  form_all();
  task(1).form({.step = 1, .program = "p"});
  service_->process_gone(worker(1), task(1).agent->options().incarnation);
  pass(seconds(1));
  EXPECT_THAT(task(1).errors, ElementsAre(HasSubstr("fenced, generation 2")));
}

TEST_F(ElasticGroupTest, OneCallAtATimeAndWhatIsNoStanding) {
  begin(2);
  task(0).form({.program = "p"});
  task(0).form({.program = "p"});
  EXPECT_THAT(task(0).errors, ElementsAre(HasSubstr("another thread of this task is forming")));
  task(1).form({.step = -2, .program = "p"});
  task(1).group->start_form({.step = 4, .reached = 3}, [&](auto error, const auto&) {
    task(1).errors.push_back(record_error(error).message);
  });
  EXPECT_THAT(task(1).errors, ElementsAre(HasSubstr("step -2"), HasSubstr("reached 3")));
  task(0).group = nullptr;
  EXPECT_THAT(task(0).errors, Contains("the elastic group has ended"));
  expect_error<InvalidArgumentError>([&] { ElasticGroup(*task(0).agent, {}); },
                                     "the name of an elastic group is empty");
}

// The blocking call, on threads and real time.
TEST(ElasticGroupThreads, FormAgainAfterALoss) {
  rpc::SystemClock clock;
  std::unique_ptr<CoordinationService> service = make_service(clock, 99, 3);
  std::vector<std::unique_ptr<MembershipAgent>> agents;
  std::vector<std::unique_ptr<ElasticGroup>> groups;
  for (int i = 0; i < 3; ++i) {
    AgentOptions options = agent_options(i, 10 + uint64_t(i));
    const rpc::Caller caller{.task = options.task, .incarnation = options.incarnation};
    agents.push_back(std::make_unique<MembershipAgent>(
        clock, std::make_shared<ServiceChannel>(service, caller), std::move(options)));
    agents.back()->start();
    groups.push_back(
        std::make_unique<ElasticGroup>(*agents.back(), ElasticOptions{.group = {.name = "g"}}));
  }
  const auto form = [&](std::vector<size_t> tasks, int64_t step) {
    std::vector<std::future<Record>> calls;
    for (const size_t i : tasks) {
      calls.push_back(std::async(std::launch::async, [&groups, i, step] {
        return groups[i]->form({.step = step, .reached = step, .program = "p"});
      }));
    }
    std::vector<Record> records;
    for (auto& call : calls) records.push_back(call.get());
    for (const Record& record : records) EXPECT_EQ(record, records[0]);
    return records[0];
  };
  EXPECT_EQ(form({0, 1, 2}, kNoStep).members.size(), 3u);
  service->process_gone(worker(0), 10);
  const Record second = form({1, 2}, 4);
  EXPECT_THAT(indices(second), ElementsAre(1, 2));
  EXPECT_EQ(form({1, 2}, 5).number, second.number + 1);
  expect_error<AbortedError>([&] { groups[0]->form({.program = "p"}); }, "fenced");
  groups.clear();
  for (auto& agent : agents) agent->stop();
}

}  // namespace
}  // namespace cohort::internal::elastic
