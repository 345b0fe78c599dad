// By a clock of its own, with ps tasks that answer as they are told.
#include "cohort/parameter_server/coordinator/ps_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/coordinator/testing_clock.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ToldPs final : public rpc::Channel {
 public:
  const TaskId& peer() const override { return peer_; }
  const std::string& address() const override { return address_; }
  void start(std::string_view method, rpc::Message, const rpc::CallOptions&,
             std::function<void(rpc::CallResult)> done) override {
    if (method == "leadership/attend") {
      ++attended;
      attendance_ = std::move(done);
    } else {
      ++asked;
      done({.error = answers ? nullptr : unavailable(), .reply = {}});
    }
  }
  void close() override {}

  void break_connection() {
    std::exchange(attendance_, nullptr)({.error = unavailable(), .reply = {}});
  }
  std::exception_ptr unavailable() const {
    return rpc::make_error(Code::kUnavailable, "its connection broke", "",
                           {.peer = to_string(peer_)});
  }

  bool answers = true;
  int attended = 0;
  int asked = 0;

 private:
  const TaskId peer_{"ps", 0};
  const std::string address_ = "host:1";
  std::function<void(rpc::CallResult)> attendance_;
};

class PsWatchTest : public ::testing::Test {
 protected:
  PsWatchTest() {
    watch_->start([this](const std::exception_ptr& error) { lost_ = record_error(error); });
  }
  ~PsWatchTest() override { watch_->stop(); }
  // Of a closure; whether it runs again.
  bool fail_once() {
    bool runs_again = false;
    watch_->failed(0, ps_->unavailable(), [&] { runs_again = true; });
    clock_.advance(seconds(2));
    return runs_again;
  }

  HandSetClock clock_;
  const std::shared_ptr<ToldPs> ps_ = std::make_shared<ToldPs>();
  const std::shared_ptr<PsWatch> watch_ = std::make_shared<PsWatch>(
      clock_, PsWatch::Options{.num_ps = 1,
                               .generation = 2,
                               .channel = [this](int) { return ps_; },
                               .last_checkpoint = [] { return "dir/ckpt-7"; },
                               .failure_told_by = [this](const TaskId&) { return told_; }});
  std::string told_;
  std::optional<ErrorRecord> lost_;
};

TEST_F(PsWatchTest, AConnectionThatIsThereAgainIsNoLoss) {
  EXPECT_EQ(ps_->attended, 1);
  ps_->break_connection();
  EXPECT_EQ(ps_->asked, 1);
  EXPECT_EQ(ps_->attended, 2);
  clock_.advance(seconds(10));
  EXPECT_FALSE(lost_.has_value());
}

TEST_F(PsWatchTest, WhoDoesNotAnswerWithinTheGraceIsLost) {
  ps_->answers = false;
  ps_->break_connection();
  clock_.advance(milliseconds(290));
  EXPECT_FALSE(lost_.has_value());
  EXPECT_GT(ps_->asked, 1);
  clock_.advance(milliseconds(100));
  ASSERT_TRUE(lost_.has_value());
  EXPECT_EQ(lost_->code, Code::kUnavailable);
  EXPECT_THAT(lost_->message, AllOf(HasSubstr("lost /job:ps/task:0 (host:1)"),
                                    HasSubstr("its last checkpoint, 'dir/ckpt-7'")));
}

TEST_F(PsWatchTest, KnowsWhatErrorsAreAbout) {
  const std::string ps = to_string(TaskId{"ps", 0});
  const auto about = [&](Code code, const std::string& task, const ErrorDetail& detail) {
    return watch_->about(rpc::make_error(code, "an error", task, detail));
  };
  EXPECT_EQ(about(Code::kUnavailable, "", {.peer = ps}), 0);
  EXPECT_EQ(about(Code::kDeadlineExceeded, "", {.peer = ps}), 0);
  EXPECT_EQ(about(Code::kCancelled, ps, {.rpc = "store/read"}), 0);  // its answer: it ends
  EXPECT_EQ(about(Code::kCancelled, "", {.peer = ps}), -1);          // it is the caller that ends
  EXPECT_EQ(about(Code::kNotFound, ps, {.peer = ps}), -1);
  EXPECT_EQ(about(Code::kUnavailable, "", {.peer = to_string(TaskId{"worker", 0})}), -1);
}

TEST_F(PsWatchTest, WhoHasSaidWhyIsLostForThatReason) {
  told_ = "/job:ps/task:0 has failed: no such file";
  ps_->answers = false;
  ps_->break_connection();
  clock_.advance(seconds(1));
  ASSERT_TRUE(lost_.has_value());
  EXPECT_THAT(lost_->message, HasSubstr("its connection broke (" + told_ + ")"));
}

TEST_F(PsWatchTest, AFewFailuresAMinuteAreTolerated) {
  EXPECT_EQ(watch_->about(ps_->unavailable()), 0);
  EXPECT_EQ(watch_->about(std::make_exception_ptr(UnavailableError("of a worker's own"))), -1);
  for (int minute = 0; minute < 2; ++minute) {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(fail_once());
    clock_.advance(seconds(61));
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fail_once());
  EXPECT_FALSE(lost_.has_value());
  EXPECT_FALSE(fail_once());
  EXPECT_TRUE(lost_.has_value());
}

// Else what the worker still does would count, beside the closures that go to others.
TEST_F(PsWatchTest, AWorkerIsRefusedWhenThePsTaskHasSaidSo) {
  bool is_refused = false;
  ps_->answers = false;  // the connection broke, and the attendance may not know yet
  watch_->refuse_worker(3, 7, [&] { is_refused = true; });
  clock_.advance(milliseconds(100));
  EXPECT_FALSE(is_refused);
  EXPECT_GT(ps_->asked, 1);
  ps_->answers = true;
  clock_.advance(milliseconds(100));
  EXPECT_TRUE(is_refused);
}

TEST_F(PsWatchTest, AWorkerIsRefusedByALostPsTask) {
  bool is_refused = false;
  ps_->answers = false;
  watch_->refuse_worker(3, 7, [&] { is_refused = true; });
  ps_->break_connection();
  clock_.advance(seconds(1));
  EXPECT_TRUE(lost_.has_value());
  EXPECT_TRUE(is_refused);
}

// Of all closures that were under way.
TEST_F(PsWatchTest, WhatFailsAtTheSameTimeIsOneFailure) {
  int again = 0;
  for (int i = 0; i < 20; ++i) watch_->failed(0, ps_->unavailable(), [&] { ++again; });
  clock_.advance(seconds(1));
  EXPECT_EQ(again, 20);
  EXPECT_FALSE(lost_.has_value());
}

}  // namespace
}  // namespace cohort::internal
