#include "cohort/cluster/rpc/repeating_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Its time goes on where the test says so.
class HandClock final : public Clock {
 public:
  Time now() const override { return now_; }
  TimerId call_at(Time when, std::function<void()> fn) override {
    timers_[{when, ++last_}] = std::move(fn);
    return last_;
  }
  void cancel(TimerId timer) override {
    std::erase_if(timers_, [&](const auto& entry) { return entry.first.second == timer; });
  }
  // Runs the next timer; how long it took until then.
  milliseconds next() {
    const auto first = timers_.begin();
    const auto passed = first->first.first - now_;
    now_ = first->first.first;
    const auto fn = std::move(first->second);
    timers_.erase(first);
    fn();
    return std::chrono::duration_cast<milliseconds>(passed);
  }
  size_t size() const { return timers_.size(); }

 private:
  Time now_ = std::chrono::steady_clock::now();
  TimerId last_ = 0;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
};

// Answers from a list, each call at once.
class ListChannel final : public Channel {
 public:
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void start(std::string_view method, Message request, const CallOptions& options,
             std::function<void(CallResult)> done) override {
    calls.push_back(str(method, " ", request.control, " ",
                        std::chrono::duration_cast<milliseconds>(options.timeout).count()));
    CallResult answer = std::move(answers.front());
    answers.pop_front();
    done(std::move(answer));
  }
  void close() override {}

  std::deque<CallResult> answers;
  std::vector<std::string> calls;

 private:
  const TaskId peer_{"ps", 0};
  const std::string address_ = "127.0.0.1:1";
};

CallResult refusal(Code code, Cause cause) {
  return {.error = make_error(code, "no", "", {.cause = cause}), .reply = {}};
}

struct RepeatingChannelTest : ::testing::Test {
  void start(milliseconds timeout) {
    channel->start("s/m", {.control = "x"}, {.timeout = timeout}, [this](const CallResult& result) {
      ends.push_back(result.error ? str(code_name(record_error(result.error).code))
                                  : result.reply.control);
    });
  }
  HandClock clock;
  const std::shared_ptr<ListChannel> inner = std::make_shared<ListChannel>();
  const std::shared_ptr<Channel> channel =
      repeat_early_calls(inner, [this]() -> Clock& { return clock; });
  std::vector<std::string> ends;
};

TEST_F(RepeatingChannelTest, ACallThatComesTooEarlyStartsAgain) {
  for (int i = 0; i < 3; ++i) inner->answers.push_back(refusal(Code::kUnavailable, Cause::kBehind));
  inner->answers.push_back({.error = nullptr, .reply = {.control = "done"}});
  start(seconds(1));
  EXPECT_THAT(ends, IsEmpty());
  EXPECT_EQ(clock.next(), milliseconds(10));
  EXPECT_EQ(clock.next(), milliseconds(20));
  EXPECT_EQ(clock.next(), milliseconds(40));
  EXPECT_THAT(ends, ElementsAre("done"));
  EXPECT_EQ(inner->calls.size(), 4u);
  EXPECT_EQ(inner->calls[0], "s/m x 1000");
  EXPECT_NE(inner->calls[3], inner->calls[0]);  // less time is left
  EXPECT_EQ(clock.size(), 0u);
}

TEST_F(RepeatingChannelTest, NotBeyondItsTimeout) {
  for (int i = 0; i < 3; ++i) inner->answers.push_back(refusal(Code::kUnavailable, Cause::kBehind));
  start(milliseconds(35));
  clock.next();
  clock.next();
  EXPECT_THAT(ends, ElementsAre("UNAVAILABLE"));
  EXPECT_EQ(clock.size(), 0u);
}

TEST_F(RepeatingChannelTest, OtherErrorsAreTheCallers) {
  inner->answers.push_back(refusal(Code::kUnavailable, Cause::kOther));
  inner->answers.push_back(refusal(Code::kAborted, Cause::kBehind));
  start(seconds(1));
  start(seconds(1));
  EXPECT_THAT(ends, ElementsAre("UNAVAILABLE", "ABORTED"));
}

TEST_F(RepeatingChannelTest, ClosingEndsACallThatWaits) {
  inner->answers.push_back(refusal(Code::kUnavailable, Cause::kBehind));
  start(seconds(1));
  channel->close();
  EXPECT_THAT(ends, ElementsAre("CANCELLED"));
  EXPECT_EQ(clock.size(), 0u);
}

}  // namespace
}  // namespace cohort::internal::rpc
