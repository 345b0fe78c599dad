#include "cohort/parameter_server/store/store_client.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "cohort/cluster/rpc/frame.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/store/packed_message.h"

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A ps task without sockets, which answers when it is told to.
class Ps final : public rpc::Channel {
 public:
  VariableStore store;
  std::vector<std::string> methods;

  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void close() override {}
  void start(std::string_view method, rpc::Message request, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    methods.emplace_back(method);
    EXPECT_NO_THROW(rpc::MessageWriter({}, request)) << "it is too long for a call";
    waiting_.push_back([this, method = std::string(method), request, done] {
      const auto whole = unpacked(request);
      const rpc::Message reply = packed(answer(method, whole ? *whole : request));
      EXPECT_NO_THROW(rpc::MessageWriter({}, reply)) << "it is too long for an answer";
      done({.error = nullptr, .reply = reply});
    });
  }
  void answer_one() {
    waiting_.front()();
    waiting_.pop_front();
  }

 private:
  rpc::Message answer(const std::string& method, const rpc::Message& request) {
    if (method == "store/apply") {
      store.apply(0, decode_apply(request).ops);
      return {};
    }
    const PushPullRequest both = decode_push_pull(request);
    store.apply(both.push.token, both.push.ops);
    ReadReply reply{.values = store.read_together(both.read.entries)};
    for (const auto& [key, indices] : both.rows.entries) {
      reply.values.push_back(store.read_rows(key, indices));
    }
    return encode(reply);
  }

  const TaskId peer_{"ps", 0};
  const std::string address_ = "nowhere";
  std::deque<std::function<void()>> waiting_;
};

class StoreClientTest : public ::testing::Test {
 protected:
  StoreClientTest() {
    for (const auto& ps : tasks_) {
      ps->store.create({1, 0}, "v", at::zeros({2}));
      ps->store.create({2, 0}, "table", at::arange(6).reshape({3, 2}));
    }
  }
  static std::vector<StoreOp> add(double number) {
    return {AssignShard{{1, 0}, AssignOp::kAdd, at::full({2}, number)}};
  }
  static StoreClient::Known whole(int ps) { return {{ps, {1, 0}}, -1}; }

  const std::vector<std::shared_ptr<Ps>> tasks_{std::make_shared<Ps>(), std::make_shared<Ps>()};
  const StoreClient client_{
      2, [this](int ps) { return tasks_[static_cast<size_t>(ps)]; }, [] { return SessionId{1}; },
      [](const std::exception_ptr& error) { return error; }, std::chrono::seconds(1)};
};

// One call to each ps task; values are those after the push, in the order of the questions.
TEST_F(StoreClientTest, APushBringsWhatItAskedFor) {
  StoreClient::Pull pull;
  pull.shards = {whole(1), whole(0)};
  pull.rows = {{{0, {2, 0}}, at::arange(1, 3)}};
  const auto push = client_.start({add(1), add(2)}, {.token = 7}, pull);
  bool ended = false;
  push->on_end([&](const std::exception_ptr& error) { ended = error == nullptr; });
  tasks_[1]->answer_one();
  EXPECT_FALSE(ended);
  tasks_[0]->answer_one();
  EXPECT_TRUE(ended);
  EXPECT_EQ(push->wait(), nullptr);
  const PushUnderWay::Values values = push->values();
  ASSERT_EQ(values.shards.size(), 2u);
  EXPECT_TRUE(at::equal(values.shards[0].tensor, at::full({2}, 2.f)));
  EXPECT_TRUE(at::equal(values.shards[1].tensor, at::ones({2})));
  EXPECT_TRUE(at::equal(values.rows.at(0).tensor, at::arange(2, 6).reshape({2, 2})));
  EXPECT_THAT(tasks_[0]->methods, ElementsAre("store/push_pull"));
}

// All of a step is applied or nothing, so that it is one call, whatever the number of variables.
TEST_F(StoreClientTest, APushOfManyShardsIsOneCallToo) {
  constexpr int kShards = 10'000;
  std::vector<StoreOp> ops;
  StoreClient::Pull pull;
  for (int i = 10; i < 10 + kShards; ++i) {
    tasks_[0]->store.create({i, 0}, "v", at::zeros({2}));
    ops.emplace_back(AssignShard{{i, 0}, AssignOp::kAdd, at::full({2}, 1. * i)});
    pull.shards.push_back({{0, {i, 0}}, -1});
  }
  const auto push = client_.start({ops}, {.token = 7}, pull);
  tasks_[0]->answer_one();
  ASSERT_EQ(push->wait(), nullptr);
  const PushUnderWay::Values values = push->values();
  ASSERT_EQ(values.shards.size(), size_t{kShards});
  for (int i = 0; i < kShards; ++i) {
    const Tensor& value = values.shards[static_cast<size_t>(i)].tensor;
    ASSERT_TRUE(at::equal(value, at::full({2}, 10.f + static_cast<float>(i)))) << i;
  }
  EXPECT_THAT(tasks_[0]->methods, ElementsAre("store/push_pull"));
}

TEST_F(StoreClientTest, APushThatAsksForNothingIsAPush) {
  const auto push = client_.start({add(1), {}}, {}, {});
  EXPECT_THAT(tasks_[0]->methods, ElementsAre("store/apply"));
  EXPECT_TRUE(tasks_[1]->methods.empty());
  tasks_[0]->answer_one();
  EXPECT_EQ(push->wait(), nullptr);
  EXPECT_TRUE(push->values().shards.empty());
  EXPECT_EQ(client_.start({}, {}, {})->wait(), nullptr);
}

TEST(PushUnderWay, GivesTheErrorOfAPsTaskAfterAllHaveAnswered) {
  PushUnderWay push({{.ps = 0}, {.ps = 1}});
  std::exception_ptr error;
  push.on_end([&](const std::exception_ptr& got) { error = got; });
  push.answered(0, {.error = std::make_exception_ptr(UnavailableError("gone")), .reply = {}});
  EXPECT_EQ(error, nullptr);
  push.answered(1, {});
  EXPECT_THAT(thrown<UnavailableError>([&] { std::rethrow_exception(error); }), HasSubstr("gone"));
  std::exception_ptr again;
  push.on_end([&](const std::exception_ptr& got) { again = got; });
  EXPECT_EQ(again, error);
  EXPECT_EQ(push.wait(), error);
}

TEST(PushUnderWay, AnswersThatDoNotFitAreAnError) {
  PushUnderWay push({{.ps = 3, .shards = {0, 1}}});
  push.answered(0, {.error = nullptr, .reply = encode(ReadReply{{{1, at::ones({1})}}})});
  EXPECT_EQ(push.wait(), nullptr);
  EXPECT_THAT(thrown<DataLossError>([&] { push.values(); }),
              HasSubstr("ps task 3 answered with 1 values instead of 2"));
}

}  // namespace
}  // namespace cohort::internal
