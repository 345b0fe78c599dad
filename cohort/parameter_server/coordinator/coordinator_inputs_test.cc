// What a coordinator asks of workers about their inputs, with tasks that answer when they are told
// to.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/tasks/structure_message.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/testing_clock.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A worker's, which keeps calls, or a ps task's, which answers at once.
class ToldTask final : public rpc::Channel {
 public:
  explicit ToldTask(TaskId peer) : peer_(std::move(peer)) {}
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    if (peer_.job == "ps") {
      if (method != "leadership/attend") done({});
      return;
    }
    calls_.push_back({std::string(method), std::move(request), std::move(done)});
  }
  void close() override {}

  // The oldest call of this method gets its answer. Returns which input it names; 0: there is no
  // such call.
  uint64_t answer(const std::string& method, const std::exception_ptr& error = nullptr,
                  rpc::Message reply = {}) {
    for (auto call = calls_.begin(); call != calls_.end(); ++call) {
      if (call->method != method) continue;
      const Call answered = std::move(*call);
      calls_.erase(call);
      const bool is_about_input = method.ends_with("_input") || method == "closures/read_value";
      const uint64_t input = is_about_input ? decode_make_input(answered.request).input : 1;
      answered.done({.error = error, .reply = std::move(reply)});
      return input;
    }
    return 0;
  }

 private:
  struct Call {
    std::string method;
    rpc::Message request;
    std::function<void(rpc::CallResult)> done;
  };
  const TaskId peer_;
  const std::string address_ = "told:1";
  std::deque<Call> calls_;
};

class CoordinatorInputs : public ::testing::Test {
 protected:
  CoordinatorInputs() {
    CoordinatorSurroundings around;
    around.num_workers = 2;
    around.num_ps = 1;
    around.clock = &clock_;
    around.channel = [this](const TaskId& task) {
      return task.job == "ps" ? ps_ : task.index == 0 ? worker_ : absent_;
    };
    distribute::coordinator::ClusterCoordinatorOptions options;
    options.max_worker_losses = 2;
    core_ = std::make_shared<CoordinatorCore>(around, options);
    core_->start();
    let_it_come();
  }
  ~CoordinatorInputs() override { core_->stop(); }

  void let_it_come() {
    EXPECT_TRUE(worker_->answer("leadership/take"));
    EXPECT_TRUE(worker_->answer("closures/hello"));
  }

  void lose_it() {
    worker_->answer("leadership/attend",
                    rpc::no_answer(Code::kUnavailable, "its connection broke", {"worker", 0}));
    clock_.advance(seconds(1));
  }

  HandSetClock clock_;
  const std::shared_ptr<ToldTask> worker_ = std::make_shared<ToldTask>(TaskId{"worker", 0});
  const std::shared_ptr<ToldTask> absent_ = std::make_shared<ToldTask>(TaskId{"worker", 1});
  const std::shared_ptr<ToldTask> ps_ = std::make_shared<ToldTask>(TaskId{"ps", 0});
  std::shared_ptr<CoordinatorCore> core_;
};

TEST_F(CoordinatorInputs, AWorkerThatComesBackMakesWhatSomebodyHolds) {
  const InputHandlePtr first = core_->make_input("first");
  InputHandlePtr second = core_->make_input("second");
  const InputHandlePtr third = core_->make_input("third");
  for (const uint64_t input : {1, 2, 3}) EXPECT_EQ(worker_->answer("closures/make_input"), input);
  lose_it();
  let_it_come();
  second.reset();  // while it makes the first one
  clock_.advance(seconds(2));
  EXPECT_EQ(worker_->answer("closures/drop_input"), 2u);
  EXPECT_EQ(worker_->answer("closures/make_input"), 1u);
  EXPECT_EQ(worker_->answer("closures/make_input"), 3u);
  EXPECT_EQ(worker_->answer("closures/make_input"), 0u);
}

TEST_F(CoordinatorInputs, WhatNobodyHoldsWhenItHasBeenMadeGoes) {
  InputHandlePtr input = core_->make_input("one");
  input.reset();
  clock_.advance(seconds(2));
  EXPECT_EQ(worker_->answer("closures/drop_input"), 1u);  // which may overtake the making
  EXPECT_EQ(worker_->answer("closures/make_input"), 1u);
  EXPECT_EQ(worker_->answer("closures/drop_input"), 1u);
}

// A worker that comes back meanwhile makes it again.
TEST_F(CoordinatorInputs, TheSourceStaysAsLongAsTheInput) {
  auto source = std::make_shared<int>();
  const std::weak_ptr<int> stays = source;
  InputHandlePtr input = core_->make_input("one", InputKind::kIterator, std::move(source));
  const InputHandlePtr other = core_->make_input("other");
  clock_.advance(seconds(2));
  EXPECT_FALSE(stays.expired());
  input.reset();
  clock_.advance(seconds(2));
  EXPECT_TRUE(stays.expired());
}

// A worker may not reach a ps task that the coordinator reaches.
TEST_F(CoordinatorInputs, WhatAPsTaskNeverAnswersToIsTriedAsOftenAsAClosure) {
  const InputHandlePtr never = core_->make_input("never", InputKind::kValue);
  const InputHandlePtr next = core_->make_input("next");
  const auto unanswered = rpc::make_error(Code::kUnavailable, "no route", "/job:worker/task:0",
                                          {.peer = to_string(TaskId{"ps", 0})});
  EXPECT_EQ(worker_->answer("closures/make_input", unanswered), 1u);
  EXPECT_EQ(worker_->answer("closures/make_input"), 2u);
  for (int i = 1; i < core_->options().max_closure_attempts; ++i) {
    clock_.advance(milliseconds(200));
    ASSERT_EQ(worker_->answer("closures/make_input", unanswered), 1u) << i;
  }
  clock_.advance(seconds(1));
  EXPECT_EQ(worker_->answer("closures/make_input"), 0u);
  const auto results = core_->read_value(never);
  const auto failed = rpc::make_error(Code::kUnavailable, "could not be made", "/job:worker/task:0",
                                      {.cause = Cause::kInputFailed});
  EXPECT_EQ(worker_->answer("closures/read_value", failed), 1u);
  EXPECT_EQ(results[0]->status(), RemoteStatus::kAborted);
  EXPECT_TRUE(core_->workers()[0].is_alive);
}

rpc::Message answer_of(int64_t value) { return to_message(Structure(at::full({}, value, int64))); }

int64_t value_of(const RemoteResult& result) {
  return result.get(std::chrono::steady_clock::now(), "the value").tensor().item<int64_t>();
}

TEST_F(CoordinatorInputs, AValueIsReadWhenTheWorkerHasMadeIt) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  const auto results = core_->read_value(value);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(worker_->answer("closures/read_value"), 0u);  // it would find none
  worker_->answer("closures/make_input");
  EXPECT_EQ(worker_->answer("closures/read_value", nullptr, answer_of(7)), 1u);
  EXPECT_EQ(value_of(*results[0]), 7);
  EXPECT_EQ(worker_->answer("closures/read_value"), 0u);
  EXPECT_EQ(results[1]->status(), RemoteStatus::kNotReady);  // of the worker that is to come
}

TEST_F(CoordinatorInputs, AValueOfALostWorkerIsReadWhenItHasMadeItAgain) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  worker_->answer("closures/make_input");
  const auto results = core_->read_value(value);
  lose_it();
  const auto broke = rpc::no_answer(Code::kUnavailable, "its connection broke", {"worker", 0});
  EXPECT_EQ(worker_->answer("closures/read_value", broke), 1u);
  let_it_come();
  EXPECT_EQ(worker_->answer("closures/read_value"), 0u);
  worker_->answer("closures/make_input");
  EXPECT_EQ(results[0]->status(), RemoteStatus::kNotReady);
  EXPECT_EQ(worker_->answer("closures/read_value", nullptr, answer_of(8)), 1u);
  EXPECT_EQ(value_of(*results[0]), 8);
}

TEST_F(CoordinatorInputs, AValueOfAWorkerThatIsGivenUpIsUnavailable) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  worker_->answer("closures/make_input");
  for (int i = 0; i < 2; ++i) {
    lose_it();
    clock_.advance(seconds(10));
    let_it_come();
    worker_->answer("closures/make_input");
  }
  const auto results = core_->read_value(value);
  lose_it();  // once more than it may be
  for (const auto& result : {results[0], core_->read_value(value)[0]}) {
    EXPECT_THAT(thrown<UnavailableError>([&] { value_of(*result); }),
                ::testing::AllOf(::testing::HasSubstr("/job:worker/task:0"),
                                 ::testing::HasSubstr("is given up")));
  }
  EXPECT_EQ(results[1]->status(), RemoteStatus::kNotReady);
}

TEST_F(CoordinatorInputs, ValuesAreCancelledWithTheCoordinator) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  worker_->answer("closures/make_input");
  const auto asked = core_->read_value(value);
  core_->stop();
  EXPECT_THROW(value_of(*asked[0]), CancelledError);
  EXPECT_THROW(value_of(*core_->read_value(value)[0]), CancelledError);
}

TEST_F(CoordinatorInputs, WhatIsNoLongerWantedIsNotAsked) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  core_->read_value(value);  // whose caller has given up
  const auto results = core_->read_value(value);
  worker_->answer("closures/make_input");
  EXPECT_EQ(worker_->answer("closures/read_value", nullptr, answer_of(7)), 1u);
  EXPECT_EQ(worker_->answer("closures/read_value"), 0u);
}

TEST_F(CoordinatorInputs, AReadThatNobodyWaitsForIsNotSentLater) {
  const InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  core_->read_value(value);  // whose caller has given up
  worker_->answer("closures/make_input");
  EXPECT_EQ(worker_->answer("closures/read_value"), 0u);
}

TEST_F(CoordinatorInputs, AReadThatNobodyWaitsForKeepsNoValue) {
  InputHandlePtr value = core_->make_input("value", InputKind::kValue);
  worker_->answer("closures/make_input");
  core_->read_value(value);  // also of the absent worker
  EXPECT_EQ(worker_->answer("closures/read_value", nullptr, answer_of(7)), 1u);
  value.reset();
  clock_.advance(seconds(2));
  EXPECT_EQ(worker_->answer("closures/drop_input"), 1u);
}

}  // namespace
}  // namespace cohort::internal
