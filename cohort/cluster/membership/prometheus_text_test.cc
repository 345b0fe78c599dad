#include "cohort/cluster/membership/prometheus_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "cohort/cluster/membership/testing_status.h"

namespace cohort::internal::membership {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PrometheusText, HasEverything) {
  EXPECT_EQ(
      prometheus_text(example_status().view),
      R"(# HELP cohort_cluster_generation Raised by each task that is lost, leaves or comes; 0 before the start.
# TYPE cohort_cluster_generation gauge
cohort_cluster_generation 3
# HELP cohort_cluster_failed Whether the cluster has ended with an error.
# TYPE cohort_cluster_failed gauge
cohort_cluster_failed 0
# HELP cohort_task_up Whether the task is alive.
# TYPE cohort_task_up gauge
cohort_task_up{job="chief",index="0"} 1
cohort_task_up{job="worker",index="0"} 0
cohort_task_up{job="worker",index="1"} 0
# HELP cohort_task_incarnation_seconds How long the task has been alive, or awaited, lost or gone.
# TYPE cohort_task_incarnation_seconds gauge
cohort_task_incarnation_seconds{job="chief",index="0"} 185
cohort_task_incarnation_seconds{job="worker",index="0"} 61
cohort_task_incarnation_seconds{job="worker",index="1"} 180000
# HELP cohort_task_heartbeat_age_seconds How long ago the task was last heard of.
# TYPE cohort_task_heartbeat_age_seconds gauge
cohort_task_heartbeat_age_seconds{job="chief",index="0"} 0.4
cohort_task_heartbeat_age_seconds{job="worker",index="0"} 81
# HELP cohort_task_figure What the task says of itself, by name.
# TYPE cohort_task_figure gauge
cohort_task_figure{job="chief",index="0",name="loss"} 0.25
cohort_task_figure{job="chief",index="0",name="steps/s"} 1234.5
# HELP cohort_stale_calls_refused_total Calls of processes that are of the cluster no more, which were refused.
# TYPE cohort_stale_calls_refused_total counter
cohort_stale_calls_refused_total 7
)");
}

TEST(PrometheusText, SaysNothingOfWhatIsNotKnown) {
  View view = example_status().view;
  view.stale_refused.reset();
  for (Member& member : view.members) {
    member.state_age.reset();
    member.silence.reset();
    member.figures.clear();
  }
  const std::string text = prometheus_text(view);
  EXPECT_THAT(text, HasSubstr("cohort_task_up{"));
  EXPECT_THAT(text, Not(HasSubstr("seconds")));
  EXPECT_THAT(text, Not(HasSubstr("figure")));
  EXPECT_THAT(text, Not(HasSubstr("refused")));
}

// The grammar of the format, and that a metric's lines stand together after its HELP and TYPE.
void expect_valid(const std::string& text) {
  static const std::regex kHelp(R"(# HELP [a-z_]+ [^\\]+)");
  static const std::regex kType(R"(# TYPE ([a-z_]+) (gauge|counter|histogram))");
  static const std::regex kSample(
      R"~(([a-z_]+)(\{[a-z]+="([^"\\]|\\\\|\\"|\\n)*"(,[a-z]+="([^"\\]|\\\\|\\"|\\n)*")*\})? (NaN|[+-]Inf|-?[0-9.]+(e[+-]?[0-9]+)?))~");
  ASSERT_TRUE(text.ends_with('\n'));
  std::istringstream lines(text);
  std::string line, current;
  std::set<std::string> names;
  std::set<std::string> samples;
  while (std::getline(lines, line)) {
    std::smatch match;
    if (std::regex_match(line, match, kType)) {
      current = match[1];
      EXPECT_TRUE(names.insert(current).second) << line;
    } else if (!std::regex_match(line, kHelp)) {
      ASSERT_TRUE(std::regex_match(line, match, kSample)) << line;
      EXPECT_THAT(match[1],
                  AnyOf(current, current + "_bucket", current + "_sum", current + "_count"))
          << line;
      EXPECT_TRUE(samples.insert(match[1].str() + match[2].str()).second) << line;
    }
  }
}

TEST(PrometheusText, IsValidWhateverTasksCallTheirFigures) {
  View view = example_status().view;
  expect_valid(prometheus_text(view));
  view.members[0].figures = {
      {"a\"b\\c\nd{e}", std::numeric_limits<double>::quiet_NaN()},
      {"{}", std::numeric_limits<double>::infinity()},
      {"minus", -std::numeric_limits<double>::infinity()},
      {"tiny", 5e-324},
      {"large", -1.7976931348623157e308},
      {"läng", 1e22},
  };
  const std::string text = prometheus_text(view);
  expect_valid(text);
  EXPECT_THAT(text, HasSubstr("name=\"a\\\"b\\\\c\\nd{e}\"} NaN\n"));
  EXPECT_THAT(text, HasSubstr("name=\"{}\"} +Inf\n"));
  EXPECT_THAT(text, HasSubstr("name=\"minus\"} -Inf\n"));
  EXPECT_THAT(text, HasSubstr("name=\"tiny\"} 5e-324\n"));
}

TEST(PrometheusText, ATaskThatIsLostHasNoFiguresAnyMore) {
  View view = example_status().view;
  view.members[0].state = TaskState::kLost;
  EXPECT_THAT(prometheus_text(view), Not(HasSubstr("cohort_task_figure")));
}

TEST(PrometheusText, RefusedConnectionsAreACounterWithALabelForEachReason) {
  EXPECT_EQ(prometheus_text(std::vector<monitoring::Sample>{}), "");
  const std::string text = prometheus_text(std::vector<monitoring::Sample>{
      {.name = "refused_connections", .labels = {"handshake"}, .value = 20722},
      {.name = "refused_connections", .labels = {"limit"}, .value = 1}});
  expect_valid(text);
  EXPECT_THAT(text, HasSubstr(R"(# TYPE cohort_refused_connections_total counter
cohort_refused_connections_total{reason="handshake"} 20722
cohort_refused_connections_total{reason="limit"} 1
)"));
}

TEST(PrometheusText, TimingsAreAHistogramWithALabelForEachName) {
  EXPECT_EQ(prometheus_text(std::vector<monitoring::Timing>{}), "");
  const std::string text = prometheus_text(std::vector<monitoring::Timing>{
      {.name = "closure_execution",
       .count = 5,
       .seconds = 1002.5,
       .intervals = {0, 2, 0, 1, 0, 0, 0, 0, 0, 2}},
      {.name = "remote_value_fetch", .count = 1, .seconds = 1e-6, .intervals = {1}},
  });
  expect_valid(text);
  EXPECT_THAT(text, HasSubstr(R"(# TYPE cohort_duration_seconds histogram
cohort_duration_seconds_bucket{name="closure_execution",le="1e-05"} 0
cohort_duration_seconds_bucket{name="closure_execution",le="1e-04"} 2
cohort_duration_seconds_bucket{name="closure_execution",le="0.001"} 2
cohort_duration_seconds_bucket{name="closure_execution",le="0.01"} 3
)"));
  EXPECT_THAT(text, HasSubstr(R"(name="closure_execution",le="1000"} 3
cohort_duration_seconds_bucket{name="closure_execution",le="+Inf"} 5
cohort_duration_seconds_sum{name="closure_execution"} 1002.5
cohort_duration_seconds_count{name="closure_execution"} 5
)"));
}

TEST(PrometheusText, OfAClusterThatNobodyKnowsYet) { expect_valid(prometheus_text(View{})); }

}  // namespace
}  // namespace cohort::internal::membership
