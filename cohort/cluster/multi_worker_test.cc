#include "cohort/cluster/multi_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using train::ClusterSpec;

const ClusterSpec kWithChief({{"chief", {"c:1"}},
                              {"worker", {"a:1", "b:1"}},
                              {"ps", {"p:1", "q:1"}}});
const ClusterSpec kWorkers({{"worker", {"a:1", "b:1"}}});

std::string problem(const ClusterSpec& spec, const TaskId& self) {
  return thrown<InvalidArgumentError>([&] { validate_cluster_spec(spec, self); });
}

TEST(MultiWorkerTest, RefusesWhatIsNoClusterToTrainIn) {
  EXPECT_EQ(problem(kWithChief, {"worker", 1}), "nothing was thrown");
  EXPECT_EQ(problem(kWithChief, {"evaluator", 0}), "nothing was thrown");
  EXPECT_THAT(problem(ClusterSpec({{"foobar", {"a:1"}}}), {"worker", 0}),
              ::testing::StartsWith("Disallowed task type found in cluster spec: 'foobar'"));
  EXPECT_THAT(problem(kWorkers, {"foobar", 0}),
              ::testing::StartsWith("Unrecognized task_type: 'foobar'"));
  EXPECT_THAT(problem(kWorkers, {"ps", 0}),
              ::testing::StartsWith("`task_type` 'ps' not found in cluster_spec"));
  EXPECT_THAT(problem(ClusterSpec({{"chief", {"a:1", "b:1", "c:1"}}}), {"chief", 0}),
              ::testing::StartsWith("There must be at most one 'chief' task; the cluster has 3"));
  EXPECT_THAT(problem(ClusterSpec({{"evaluator", {"a:1", "b:1"}}}), {"evaluator", 0}),
              ::testing::StartsWith("There must be at most one 'evaluator'"));
  EXPECT_THAT(problem(kWorkers, {"worker", 2}),
              ::testing::StartsWith("The `task_id` 2 is none of job 'worker''s 2 tasks"));
}

TEST(MultiWorkerTest, TheChiefIsWorkerZeroWhereThereIsNone) {
  EXPECT_TRUE(is_chief(kWithChief, {"chief", 0}));
  EXPECT_FALSE(is_chief(kWithChief, {"worker", 0}));
  EXPECT_FALSE(is_chief(kWithChief, {"ps", 0}));
  EXPECT_TRUE(is_chief(kWithChief, {"evaluator", 0}));
  EXPECT_TRUE(is_chief(kWorkers, {"worker", 0}));
  EXPECT_FALSE(is_chief(kWorkers, {"worker", 1}));
}

TEST(MultiWorkerTest, NamesTheLeader) {
  EXPECT_EQ(collective_leader(kWithChief, {"worker", 1}), "/job:chief/replica:0/task:0");
  EXPECT_EQ(collective_leader(kWorkers, {"worker", 1}), "/job:worker/replica:0/task:0");
  EXPECT_EQ(collective_leader(kWorkers, {"evaluator", 0}), "");
  EXPECT_EQ(collective_leader(ClusterSpec(), {"worker", 0}), "");
  EXPECT_EQ(coordination_leader(kWithChief), (TaskId{"chief", 0}));
  EXPECT_EQ(coordination_leader(kWorkers), (TaskId{"worker", 0}));
  EXPECT_EQ(coordination_leader(ClusterSpec({{"ps", {"a:1"}}})), std::nullopt);
}

TEST(MultiWorkerTest, NumbersChiefAndWorkers) {
  EXPECT_EQ(worker_count(kWithChief, "worker"), 3);
  EXPECT_EQ(worker_count(kWithChief, "chief"), 3);
  EXPECT_EQ(worker_count(kWithChief, "evaluator"), 1);
  EXPECT_EQ(worker_count(kWorkers, "worker"), 2);
  EXPECT_THROW(worker_count(kWithChief, "ps"), InvalidArgumentError);
  EXPECT_EQ(id_in_cluster(kWithChief, {"chief", 0}), 0);
  EXPECT_EQ(id_in_cluster(kWithChief, {"worker", 1}), 2);
  EXPECT_EQ(id_in_cluster(kWorkers, {"worker", 1}), 1);
  EXPECT_EQ(id_in_cluster(kWithChief, {"evaluator", 0}), 0);
  EXPECT_THROW(id_in_cluster(kWithChief, {"ps", 1}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::internal
