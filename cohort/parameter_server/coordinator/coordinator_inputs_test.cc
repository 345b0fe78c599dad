// What a coordinator asks of workers about their inputs, with tasks that answer when they are told to.
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/testing_clock.h"

namespace cohort::internal {
namespace {

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

  // The oldest call of this method gets its answer. Returns which input it names; 0: there is no such call.
  uint64_t answer(const std::string& method, const std::exception_ptr& error = nullptr) {
    for (auto call = calls_.begin(); call != calls_.end(); ++call) {
      if (call->method != method) continue;
      const Call answered = std::move(*call);
      calls_.erase(call);
      const bool is_about_input = method.ends_with("_input");
      const uint64_t input = is_about_input ? decode_make_input(answered.request).input : 1;
      answered.done({.error = error, .reply = {}});
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
    around.num_workers = 1;
    around.num_ps = 1;
    around.clock = &clock_;
    around.channel = [this](const TaskId& task) { return task.job == "ps" ? ps_ : worker_; };
    core_ = std::make_shared<CoordinatorCore>(around,
                                              distribute::coordinator::ClusterCoordinatorOptions());
    core_->start();
    let_it_come();
  }
  ~CoordinatorInputs() override { core_->stop(); }

  void let_it_come() {
    EXPECT_TRUE(worker_->answer("leadership/take"));
    EXPECT_TRUE(worker_->answer("closures/hello"));
  }

  HandSetClock clock_;
  const std::shared_ptr<ToldTask> worker_ = std::make_shared<ToldTask>(TaskId{"worker", 0});
  const std::shared_ptr<ToldTask> ps_ = std::make_shared<ToldTask>(TaskId{"ps", 0});
  std::shared_ptr<CoordinatorCore> core_;
};

TEST_F(CoordinatorInputs, AWorkerThatComesBackMakesWhatSomebodyHolds) {
  const InputHandlePtr first = core_->make_input("first");
  InputHandlePtr second = core_->make_input("second");
  const InputHandlePtr third = core_->make_input("third");
  for (const uint64_t input : {1, 2, 3}) EXPECT_EQ(worker_->answer("closures/make_input"), input);
  worker_->answer("leadership/attend",
                  std::make_exception_ptr(UnavailableError("its connection broke")));
  clock_.advance(seconds(1));
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

}  // namespace
}  // namespace cohort::internal
