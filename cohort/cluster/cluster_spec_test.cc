#include "cohort/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <sstream>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::train {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

const ClusterSpec kSpec(ClusterSpec::Jobs{
    {"ps", {{0, "ps0:2222"}, {1, "ps1:2222"}}},
    {"worker", {{0, "worker0:2222"}, {1, "worker1:2222"}, {2, "worker2:2222"}}},
    {"sparse", {{0, "sparse0:2222"}, {3, "sparse3:2222"}}}});

TEST(ClusterSpecTest, CountsTasksOfJobsWithAndWithoutHoles) {
  EXPECT_THAT(kSpec.jobs(), ElementsAre("ps", "sparse", "worker"));
  EXPECT_EQ(kSpec.num_tasks("ps"), 2);
  EXPECT_EQ(kSpec.num_tasks("worker"), 3);
  EXPECT_EQ(kSpec.num_tasks("sparse"), 2);
  EXPECT_EQ(kSpec.num_tasks(), 7);
  EXPECT_THAT(kSpec.task_indices("sparse"), ElementsAre(0, 3));
  EXPECT_EQ(kSpec.task_address("sparse", 3), "sparse3:2222");
  EXPECT_THAT(kSpec.job_tasks("sparse"),
              ElementsAre(Optional(Eq("sparse0:2222")), Eq(std::nullopt), Eq(std::nullopt),
                          Optional(Eq("sparse3:2222"))));
  EXPECT_TRUE(kSpec.has_job("ps"));
  EXPECT_FALSE(kSpec.has_job("chief"));
  EXPECT_EQ(kSpec.tasks().size(), 7u);
  EXPECT_EQ(kSpec.tasks()[3], (TaskId{"sparse", 3}));
}

TEST(ClusterSpecTest, NamesTheJobsAndTasksThatThereAre) {
  EXPECT_EQ(thrown<InvalidArgumentError>([] { kSpec.num_tasks("chief"); }),
            "ClusterSpec: there is no job 'chief'; jobs: ps, sparse, worker");
  EXPECT_EQ(thrown<InvalidArgumentError>([] { kSpec.task_address("sparse", 2); }),
            "ClusterSpec: job 'sparse' has no task 2; tasks: 0, 3");
  EXPECT_EQ(thrown<InvalidArgumentError>([] { kSpec.task_address("ps", 2); }),
            "ClusterSpec: job 'ps' has no task 2; tasks: 0 to 1");
  EXPECT_THROW(kSpec.task_indices("x"), InvalidArgumentError);
  EXPECT_THROW(kSpec.job_tasks("x"), InvalidArgumentError);
  EXPECT_EQ(thrown<InvalidArgumentError>([] { ClusterSpec().num_tasks("ps"); }),
            "ClusterSpec: there is no job 'ps'; jobs: none");
}

TEST(ClusterSpecTest, PrintsAsPythonDoes) {
  const ClusterSpec spec(
      {{"worker", {"worker0:3333", "worker1:4444"}}, {"ps", {"ps0:1111"}}, {"none", {}}});
  const std::string text =
      "ClusterSpec({'none': {}, 'ps': ['ps0:1111'], 'worker': ['worker0:3333', 'worker1:4444']})";
  EXPECT_EQ(spec.to_string(), text);
  std::ostringstream out;
  out << spec;
  EXPECT_EQ(out.str(), text);
  EXPECT_EQ(ClusterSpec(ClusterSpec::Jobs{{"worker", {{1, "a:1"}}}}).to_string(),
            "ClusterSpec({'worker': {1: 'a:1'}})");
  EXPECT_EQ(ClusterSpec().to_string(), "ClusterSpec({})");
}

TEST(ClusterSpecTest, IsEqualByContentAndFalseWhenEmpty) {
  const ClusterSpec list({{"job", {"x:1", "y:2"}}});
  EXPECT_EQ(list, ClusterSpec(ClusterSpec::Jobs{{"job", {{0, "x:1"}, {1, "y:2"}}}}));
  EXPECT_NE(list, ClusterSpec({{"job", {"y:2", "x:1"}}}));
  EXPECT_TRUE(list);
  EXPECT_FALSE(ClusterSpec());
  EXPECT_TRUE(ClusterSpec().empty());
  EXPECT_THAT(ClusterSpec().tasks(), IsEmpty());
}

TEST(ClusterSpecTest, RefusesWhatIsNoCluster) {
  EXPECT_THROW(ClusterSpec({{"", {"a:1"}}}), InvalidArgumentError);
  EXPECT_THROW(ClusterSpec({{"ps", {"a:1"}}, {"ps", {"b:1"}}}), InvalidArgumentError);
  EXPECT_THROW(ClusterSpec(ClusterSpec::Jobs{{"ps", {{-1, "a:1"}}}}), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::train
