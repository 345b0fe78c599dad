#include "cohort/core/program/failure_frame.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/program/run_program.h"
#include "cohort/core/program/task.h"

namespace cohort::internal {
namespace {

using testing::internal::CaptureStderr;
using testing::internal::GetCapturedStderr;

// Keeps what it is told first.
class Listener final : public FailureListener {
 public:
  void on_failure(const std::exception_ptr& error) noexcept override {
    if (std::exchange(told_, true)) return;
    promise_.set_value(error ? record_error(error).message : "nothing is known");
  }
  std::string told() {
    if (future_.wait_for(std::chrono::seconds(20)) != std::future_status::ready) return "";
    return future_.get();
  }
  bool was_told() const { return told_; }

 private:
  bool told_ = false;
  std::promise<std::string> promise_;
  std::future<std::string> future_ = promise_.get_future();
};

// Leaves its frame as a strategy does, from its destructor.
struct Leaves {
  ~Leaves() { FailureFrame::current()->leave(listener); }
  std::shared_ptr<Listener> listener;
};

TEST(FailureFrame, WhoLeavesIsToldWhatWasCaught) {
  const auto listener = std::make_shared<Listener>();
  CaptureStderr();
  EXPECT_EQ(cohort::run_program([&] {
              const Leaves leaves{listener};
              throw DataLossError("record 7 is damaged");
            }),
            65);
  GetCapturedStderr();
  EXPECT_EQ(listener->told(), "record 7 is damaged");
}

TEST(FailureFrame, WhoLeavesIsNotKeptWaitingByAProgramThatGoesOn) {
  const auto listener = std::make_shared<Listener>();
  std::string told;
  EXPECT_EQ(cohort::run_program([&] {
              try {
                const Leaves leaves{listener};
                throw DataLossError("record 7 is damaged");
              } catch (const DataLossError&) {
                told = listener->told();
              }
            }),
            0);
  EXPECT_EQ(told, "nothing is known");
}

TEST(FailureFrame, TheEndOfAProgramKeepsNobodyWaiting) {
  const auto listener = std::make_shared<Listener>();
  EXPECT_EQ(cohort::run_program([&] { const Leaves leaves{listener}; }), 0);
  EXPECT_TRUE(listener->was_told());
}

TEST(FailureFrame, ThoseThatLiveAreToldIfTheyBelongToTheTask) {
  const auto mine = std::make_shared<Listener>();
  const auto another = std::make_shared<Listener>();
  add_failure_listener(mine);
  {
    const ScopedTask other(Task::named("worker", 7));
    add_failure_listener(another);
  }
  {
    const auto gone = std::make_shared<Listener>();
    add_failure_listener(gone);
  }
  CaptureStderr();
  cohort::run_program([] { throw DataLossError("record 7 is damaged"); });
  GetCapturedStderr();
  EXPECT_EQ(mine->told(), "record 7 is damaged");
  EXPECT_FALSE(another->was_told());
}

TEST(FailureFrame, TheInnermostIsTheCurrentOne) {
  EXPECT_EQ(FailureFrame::current(), nullptr);
  FailureFrame outer;
  {
    FailureFrame inner;
    EXPECT_EQ(FailureFrame::current(), &inner);
  }
  EXPECT_EQ(FailureFrame::current(), &outer);
  std::async(std::launch::async, [] { EXPECT_EQ(FailureFrame::current(), nullptr); }).get();
}

}  // namespace
}  // namespace cohort::internal
