#include "cohort/parameter_server/variables/released_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/parameter_server/coordinator/testing_clock.h"

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReleasedShardsTest : public ::testing::Test {
 protected:
  ReleasedShardsTest() {
    released_ = std::make_shared<ReleasedShards>(ReleasedShards::Surroundings{
        .begun = [this] { return begun_; },
        .ended = [this] { return ended_; },
        .release =
            [this](const ReleasedShards::Shards& shards, const StoreClient::Failed& failed) {
              if (throws_) throw FailedPreconditionError("there is no such task");
              std::vector<std::string> names;
              for (const auto& one : shards) names.push_back(one.name);
              messages_.push_back(names);
              if (fails_) failed(shards);
            },
        .clock = &clock_});
  }
  static ReleasedShards::Shards shard(const std::string& name) {
    return {{.place = {.ps = 0, .key = {1, 0}}, .name = name}};
  }

  HandSetClock clock_;
  ReleasedShards::Progress begun_, ended_;
  bool fails_ = false;
  bool throws_ = false;
  std::vector<std::vector<std::string>> messages_;
  std::shared_ptr<ReleasedShards> released_;
};

TEST_F(ReleasedShardsTest, TheShardsOfAWholeModelGoInOneMessage) {
  released_->add(shard("a"));
  released_->add(shard("b"));
  EXPECT_THAT(messages_, IsEmpty());
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, ElementsAre(ElementsAre("a", "b")));
  clock_.advance(seconds(10));
  EXPECT_EQ(messages_.size(), 1u);
}

TEST_F(ReleasedShardsTest, WhatWasScheduledBeforeEndsBefore) {
  begun_ = {.closures = 7, .steps = 2, .calls = 1};
  ended_ = {.closures = 5, .steps = 1, .calls = 1};
  released_->add(shard("a"));
  clock_.advance(seconds(1));
  begun_ = {.closures = 9, .steps = 2, .calls = 2};
  ended_ = {.closures = 7, .steps = 1, .calls = 1};
  released_->add(shard("b"));
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, IsEmpty());  // the step may use both
  ended_ = {.closures = 8, .steps = 2, .calls = 1};
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, ElementsAre(ElementsAre("a")));
  ended_.closures = 9;  // later ones go on
  begun_.closures = 20;
  clock_.advance(seconds(1));
  EXPECT_EQ(messages_.size(), 1u);  // a task's program has not come to the second call
  ended_.calls = 2;
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, ElementsAre(ElementsAre("a"), ElementsAre("b")));
}

// Models that are each trained in less time than it takes to look do not wait for one another.
TEST_F(ReleasedShardsTest, WhatBeginsAfterTheReleaseIsNotWaitedFor) {
  for (int64_t call = 1; call <= 3; ++call) {
    begun_ = {.closures = static_cast<uint64_t>(10 * call), .steps = 0, .calls = call + 1};
    released_->add(shard(std::to_string(call)));
  }
  begun_ = {.closures = 90, .steps = 9, .calls = 9};
  ended_ = {.closures = 20, .steps = 0, .calls = 3};
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, ElementsAre(ElementsAre("1", "2")));
  ended_ = {.closures = 30, .steps = 0, .calls = 4};
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, ElementsAre(ElementsAre("1", "2"), ElementsAre("3")));
}

TEST_F(ReleasedShardsTest, APsTaskThatCannotBeToldIsToldAgainButNotForEver) {
  fails_ = true;
  released_->add(shard("a"));
  clock_.advance(milliseconds(350));
  EXPECT_EQ(messages_.size(), 3u);
  fails_ = false;
  released_->add(shard("b"));
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_.back(), ElementsAre("a"));
  const size_t before = messages_.size();
  fails_ = true;
  released_->add(shard("c"));
  clock_.advance(seconds(100));
  EXPECT_LT(messages_.size(), before + 100);
}

TEST_F(ReleasedShardsTest, AfterTheStrategysEndNobodyIsTold) {
  throws_ = true;  // of a task without an address
  released_->add(shard("a"));
  clock_.advance(seconds(1));
  throws_ = false;
  released_->add(shard("b"));
  released_->stop();
  released_->add(shard("c"));
  clock_.advance(seconds(1));
  EXPECT_THAT(messages_, IsEmpty());
}

TEST(ReleasedShards, HaveAClockOfTheirOwn) {
  std::promise<void> told;
  const auto released = std::make_shared<ReleasedShards>(ReleasedShards::Surroundings{
      .begun = [] { return ReleasedShards::Progress(); },
      .ended = [] { return ReleasedShards::Progress(); },
      .release = [&](const ReleasedShards::Shards&,
                     const StoreClient::Failed&) { told.set_value(); }});
  released->add({{.place = {}, .name = "a"}});
  EXPECT_EQ(told.get_future().wait_for(seconds(20)), std::future_status::ready);
  released->stop();
}

}  // namespace
}  // namespace cohort::internal
