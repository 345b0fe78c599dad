#include "cohort/cluster/cluster_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using train::ClusterSpec;

std::string problem(const ClusterSpec& spec, const std::optional<TaskId>& self,
                    const ClusterCheckOptions& options = {}) {
  return thrown<InvalidArgumentError>([&] { check_cluster(spec, self, options); });
}

TEST(ClusterCheckTest, LetsWhatCanRunPass) {
  const ClusterSpec spec(
      {{"chief", {"c:1"}}, {"worker", {"10.0.0.1:1", "[::1]:1"}}, {"ps", {"p:1"}}});
  EXPECT_EQ(problem(spec, TaskId{"worker", 1}), "nothing was thrown");
  EXPECT_EQ(problem(spec, TaskId{"evaluator", 0}), "nothing was thrown");
  EXPECT_EQ(problem(ClusterSpec({{"worker", {"0.0.0.0:1"}}}), TaskId{"worker", 0}),
            "nothing was thrown");
  EXPECT_EQ(problem(ClusterSpec(), std::nullopt, {.may_be_empty = true}), "nothing was thrown");
  EXPECT_EQ(problem(ClusterSpec(), TaskId{"evaluator", 0}), "nothing was thrown");
}

TEST(ClusterCheckTest, NamesThePathOfWhatCannotRun) {
  const TaskId worker{"worker", 0};
  EXPECT_EQ(problem(ClusterSpec({{"worker", {"a:1", "b:70000"}}}), worker, {.source = "TF_CONFIG"}),
            "TF_CONFIG: cluster.worker[1]: 'b:70000' has the port '70000'; ports are 1 to 65535");
  EXPECT_EQ(
      problem(ClusterSpec({{"ps", {"a:1"}}, {"worker", {"b:1", "A.:1"}}}), worker),
      "ClusterSpec: cluster.worker[1]: 'A.:1' is the address of cluster.ps[0], too; every task "
      "needs its own");
  EXPECT_EQ(problem(ClusterSpec({{"worker", {"a:1", "0.0.0.0:1"}}}), worker),
            "ClusterSpec: cluster.worker[1]: '0.0.0.0:1' is no address that other tasks can reach; "
            "write this task's own");
  EXPECT_EQ(problem(ClusterSpec(ClusterSpec::Jobs{{"worker", {{0, "a:1"}, {2, "b:1"}}}}), worker),
            "ClusterSpec: cluster.worker[1]: is missing; indices go from 0 without holes");
  EXPECT_EQ(
      problem(ClusterSpec({{"worker", {"a:1"}}, {"helper", {"b:1"}}}), worker),
      "ClusterSpec: cluster.helper: is no known job; jobs are chief, worker, ps and evaluator");
  EXPECT_EQ(problem(ClusterSpec({{"worker", {"a:1"}}, {"ps", {}}}), worker),
            "ClusterSpec: cluster.ps: has no tasks; leave the job out");
  EXPECT_EQ(problem(ClusterSpec({{"chief", {"a:1", "b:1"}}}), worker),
            "ClusterSpec: cluster.chief: has 2 tasks; there must be at most one 'chief'");
}

TEST(ClusterCheckTest, AsksWhichTaskThisIs) {
  const ClusterSpec spec({{"worker", {"a:1", "b:1"}}});
  EXPECT_EQ(problem(spec, std::nullopt),
            "ClusterSpec: task: is missing: which task of the cluster is this?");
  EXPECT_EQ(problem(spec, TaskId{"worker", 2}),
            "ClusterSpec: task.index: is 2; job 'worker' has 2 tasks");
  EXPECT_EQ(problem(spec, TaskId{"worker", -1}),
            "ClusterSpec: task.index: is -1; indices begin at 0");
  EXPECT_EQ(problem(spec, TaskId{"ps", 0}),
            "ClusterSpec: task.type: 'ps' is no job of the cluster, which is worker (2)");
  EXPECT_EQ(
      problem(spec, TaskId{"boss", 0}),
      "ClusterSpec: task.type: 'boss' is no known job; jobs are chief, worker, ps and evaluator");
  EXPECT_EQ(problem(spec, TaskId{"evaluator", 1}),
            "ClusterSpec: task.index: is 1; there is one evaluator");
  EXPECT_EQ(problem(ClusterSpec(), TaskId{"worker", 0}, {.may_be_empty = true}),
            "ClusterSpec: cluster: is missing, but this is /job:worker/task:0");
  EXPECT_EQ(problem(ClusterSpec(), std::nullopt),
            "ClusterSpec: cluster: is empty: there is no task to run");
}

}  // namespace
}  // namespace cohort::internal
