#include "cohort/cluster/launch/job_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/core/error.h"
#include "cohort/core/program/elastic_workers.h"

namespace cohort::internal {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> labels(const JobPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedTask& task : plan.tasks) names.push_back(task.label());
  return names;
}

TEST(JobPlanTest, ListsTheTasks) {
  EXPECT_THAT(labels(make_plan({.program = "/bin/sh", .num_workers = 2}, {0})),
              ElementsAre("worker:0", "worker:1"));
  EXPECT_THAT(labels(make_plan({.program = "/bin/sh", .num_workers = 1, .chief = true}, {0})),
              ElementsAre("chief:0", "worker:0"));
  // A parameter-server job has a coordinator without being asked for one.
  EXPECT_THAT(labels(make_plan(
                  {.program = "/bin/sh", .num_workers = 2, .num_ps = 1, .evaluator = true}, {0})),
              ElementsAre("chief:0", "worker:0", "worker:1", "ps:0", "evaluator:0"));
}

TEST(JobPlanTest, GivesAddressesAndTfConfig) {
  JobPlan plan =
      make_plan({.program = "/bin/sh", .num_workers = 1, .num_ps = 1, .evaluator = true}, {0});
  ASSERT_EQ(num_servers(plan), 3);
  set_addresses(plan, {10, 20, 30});
  EXPECT_EQ(plan.tasks[1].address, "127.0.0.1:20");
  EXPECT_EQ(plan.tasks[3].address, "");
  const std::string cluster =
      R"("cluster":{"chief":["127.0.0.1:10"],"worker":["127.0.0.1:20"],"ps":["127.0.0.1:30"]})";
  EXPECT_THAT(plan.tasks[1].environment,
              ElementsAre("TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":0}})"));
  EXPECT_THAT(plan.tasks[3].environment,
              ElementsAre("TF_CONFIG={" + cluster + R"(,"task":{"type":"evaluator","index":0}})"));
}

TEST(JobPlanTest, TellsTheTasksOfAnElasticJob) {
  JobPlan plan = make_plan({.program = "/bin/sh", .num_workers = 4, .min_workers = 2}, {0});
  set_addresses(plan, {10, 20, 30, 40});
  EXPECT_THAT(plan.tasks[3].environment, Contains("COHORT_ELASTIC_WORKERS=2:4"));
  EXPECT_EQ(parse_elastic_workers("2:4")->least, 2);
  EXPECT_EQ(parse_elastic_workers("2:4")->most, 4);
  for (const char* wrong : {"", "2", ":4", "2:", "0:4", "4:2", "2:4:6", "a:b", "-1:4"}) {
    EXPECT_FALSE(parse_elastic_workers(wrong)) << wrong;
  }
}

TEST(JobPlanTest, DividesTheCores) {
  const std::vector<int> five = {0, 2, 4, 6, 8};
  JobPlan plan = make_plan({.program = "/bin/sh", .num_workers = 2}, five);
  EXPECT_THAT(plan.tasks[0].cores, ElementsAre(0, 2, 4));
  EXPECT_THAT(plan.tasks[1].cores, ElementsAre(6, 8));
  plan = make_plan({.program = "/bin/sh", .num_workers = 2, .cores_per_task = 1}, five);
  EXPECT_THAT(plan.tasks[1].cores, ElementsAre(2));
  plan = make_plan({.program = "/bin/sh", .num_workers = 6}, five);
  EXPECT_THAT(plan.tasks[0].cores, IsEmpty());
  EXPECT_THROW(make_plan({.program = "/bin/sh", .num_workers = 2, .cores_per_task = 3}, five),
               InvalidArgumentError);
}

TEST(JobPlanTest, RefusesWhatCannotRun) {
  EXPECT_THROW(make_plan({.program = "/bin/sh"}, {0}), InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/bin/sh", .evaluator = true}, {0}), InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/bin/sh", .num_workers = -1}, {0}), InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/bin/sh", .num_workers = 100000}, {0}), InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/bin/sh", .num_ps = 1}, {0}), InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/bin/sh", .num_workers = 2, .min_workers = 3}, {0}),
               InvalidArgumentError);
  EXPECT_THROW(
      make_plan({.program = "/bin/sh", .num_workers = 2, .min_workers = 1, .chief = true}, {0}),
      InvalidArgumentError);
  EXPECT_THROW(
      make_plan({.program = "/bin/sh", .num_workers = 2, .min_workers = 1, .num_ps = 1}, {0}),
      InvalidArgumentError);
  EXPECT_THROW(make_plan({.program = "/no/program", .num_workers = 1}, {0}), NotFoundError);
}

TEST(JobPlanTest, PrintsWhatAShellCouldRun) {
  JobPlan plan = make_plan(
      {.program = "/bin/sh", .arguments = {"-c", "it's"}, .num_workers = 1, .cores_per_task = 1},
      {3});
  set_addresses(plan, {10});
  std::ostringstream out;
  print_plan(plan, out);
  EXPECT_THAT(out.str(), HasSubstr("worker:0\n  run: /bin/sh -c 'it'\\''s'\n  cores: 3\n"));
  EXPECT_THAT(out.str(), HasSubstr("  TF_CONFIG={"));
}

}  // namespace
}  // namespace cohort::internal
