#include "cohort/cluster/membership/status_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "cohort/cluster/membership/testing_status.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::internal::membership {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(StatusTable, IsAligned) {
  EXPECT_EQ(
      status_table(example_status()),
      "3 tasks, 1 alive, 1 awaited, 1 lost, generation 3; coordinated by /job:chief/task:0 at "
      "10.0.0.1:2222\n"
      "task                state    since       last heard  incarnation       address        "
      "figures\n"
      "/job:chief/task:0   alive    3 min ago   0.4 s ago   0000000000c0ffee  10.0.0.1:2222  "
      "loss 0.25, steps/s 1234.5\n"
      "/job:worker/task:0  lost     61 s ago    81 s ago    000000000000beef  10.0.0.2:2222\n"
      "/job:worker/task:1  awaited  2 days ago  -           -                 10.0.0.3:2222\n");
}

TEST(StatusTable, ColoursStatesOnATerminal) {
  const std::string text = status_table(example_status(), {.colours = true});
  EXPECT_THAT(text, HasSubstr("/job:chief/task:0   \x1b[32malive\x1b[0m    3 min ago"));
  EXPECT_THAT(text, HasSubstr("/job:worker/task:0  \x1b[31mlost\x1b[0m     61 s ago"));
  EXPECT_THAT(status_table(example_status()), Not(HasSubstr("\x1b")));
}

TEST(StatusTable, NoTaskWritesToTheTerminalWhatItLikes) {
  ClusterStatus status = example_status();
  status.view.members[0].figures = {{"\x1b[2Jgone\nsecond", 1}};
  status.view.members[0].address = "a\nb";
  const std::string text = status_table(status);
  EXPECT_THAT(text, HasSubstr("\\x1b[2Jgone second 1"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST(StatusTable, SaysWhyAClusterHasFailed) {
  ClusterStatus status = example_status();
  status.view.failure = rpc::encode_error(
      std::make_exception_ptr(DeadlineExceededError("not all tasks came within 600 s")));
  EXPECT_THAT(status_table(status), HasSubstr("\nfailed: not all tasks came within 600 s\n"));
}

TEST(StatusJson, HasEverything) {
  const auto json = nlohmann::json::parse(status_json(example_status()));
  EXPECT_EQ(json.at("time"), "2027-01-15T08:00:00.250Z");
  EXPECT_EQ(json.at("coordinator").at("task"), "/job:chief/task:0");
  EXPECT_EQ(json.at("coordinator").at("incarnation"), "0000000000c0ffee");
  EXPECT_EQ(json.at("generation"), 3);
  EXPECT_EQ(json.at("well"), false);
  EXPECT_TRUE(json.at("failure").is_null());
  EXPECT_EQ(json.at("stale_calls_refused"), 7);
  ASSERT_EQ(json.at("tasks").size(), 3u);
  const auto& chief = json.at("tasks")[0];
  EXPECT_EQ(chief.at("state"), "alive");
  EXPECT_EQ(chief.at("since"), "2027-01-15T07:56:55.250Z");
  EXPECT_EQ(chief.at("state_seconds"), 185.);
  EXPECT_EQ(chief.at("heartbeat_seconds"), 0.4);
  EXPECT_EQ(chief.at("figures").at("steps/s"), 1234.5);
  const auto& awaited = json.at("tasks")[2];
  EXPECT_EQ(awaited.at("job"), "worker");
  EXPECT_EQ(awaited.at("index"), 1);
  EXPECT_TRUE(awaited.at("heartbeat_seconds").is_null());
  EXPECT_TRUE(awaited.at("incarnation").is_null());
}

TEST(StatusJson, FitsOnOneLine) {
  const std::string text = status_json(example_status(), -1);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

TEST(IsWell, UnlessATaskIsLostOrAwaited) {
  View view = example_status().view;
  EXPECT_FALSE(is_well(view));
  view.members[1].state = TaskState::kLeft;
  EXPECT_FALSE(is_well(view));
  view.members[2].state = TaskState::kAlive;
  EXPECT_TRUE(is_well(view));
  view.failure = rpc::encode_error(std::make_exception_ptr(InternalError("no")));
  EXPECT_FALSE(is_well(view));
}

TEST(View, CarriesHowManyStaleCallsWereRefused) {
  View view = example_status().view;
  EXPECT_EQ(View::decode(view.encode()).stale_refused, 7);
  view.stale_refused = 0;
  EXPECT_EQ(View::decode(view.encode()).stale_refused, 0);
  view.stale_refused.reset();
  EXPECT_EQ(View::decode(view.encode()).stale_refused, std::nullopt);
}

}  // namespace
}  // namespace cohort::internal::membership
