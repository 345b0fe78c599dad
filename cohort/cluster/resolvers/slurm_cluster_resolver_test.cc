#include "cohort/cluster/resolvers/slurm_cluster_resolver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::cluster_resolver {
namespace {

using ::testing::HasSubstr;
using train::ClusterSpec;

constexpr char kNodes[] = "t02n13,t02n41,t02n43";

Variables step(const std::string& rank, const std::string& tasks, const std::string& per_node,
               const std::string& nodes = kNodes) {
  return {{"SLURM_PROCID", rank},         {"SLURM_STEP_NUM_TASKS", tasks},
          {"SLURM_STEP_NODELIST", nodes}, {"SLURM_STEP_TASKS_PER_NODE", per_node},
          {"SLURM_GPUS_ON_NODE", "0"},    {"CUDA_VISIBLE_DEVICES", ""}};
}

TEST(SlurmClusterResolverTest, GivesEachJobItsTasksInTheOrderOfRanks) {
  const SlurmClusterResolver resolver(
      {.jobs = {{"worker", 2}, {"ps", 1}}, .variables = step("0", "3", "1(x3)")});
  EXPECT_EQ(resolver.cluster_spec(),
            ClusterSpec({{"ps", {"t02n13:8888"}}, {"worker", {"t02n41:8888", "t02n43:8888"}}}));
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.master(), "grpc://t02n13:8888");
  EXPECT_EQ(resolver.master("worker", 0, "test"), "test://t02n41:8888");
  EXPECT_EQ(resolver.num_accelerators(), std::nullopt);
}

TEST(SlurmClusterResolverTest, AllAreWorkersUnlessSaid) {
  const SlurmClusterResolver resolver(
      {.port_base = 2222, .rpc_layer = "", .variables = step("2", "3", "1(x3)")});
  EXPECT_EQ(resolver.cluster_spec(),
            ClusterSpec({{"worker", {"t02n13:2222", "t02n41:2222", "t02n43:2222"}}}));
  EXPECT_EQ(resolver.task_id(), 2);
  EXPECT_EQ(resolver.master(), "t02n43:2222");
}

TEST(SlurmClusterResolverTest, JobsAndStepsOfAHostHavePortsOfTheirOwn) {
  const auto ports = [](Variables added, std::optional<int> port_base = std::nullopt) {
    Variables variables = step("0", "1", "1", "n");
    variables.merge(added);
    const SlurmClusterResolver resolver({.port_base = port_base, .variables = variables});
    return resolver.cluster_spec().task_address("worker", 0);
  };
  EXPECT_EQ(ports({}), "n:8888");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "0"}}), "n:8888");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "1"}, {"SLURM_STEP_ID", "0"}}), "n:8952");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "1"}, {"SLURM_STEP_ID", "1"}}), "n:15160");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "2"}, {"SLURM_STEP_ID", "0"}}), "n:9016");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "4294967295"}}), "n:13496");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "1"}, {"COHORT_PORT_BASE", "2222"}}), "n:2222");
  EXPECT_EQ(ports({{"COHORT_PORT_BASE", "2222"}}, 3333), "n:3333");
  EXPECT_EQ(ports({{"SLURM_JOB_ID", "1"},
                   {"OMPI_COMM_WORLD_RANK", "0"},
                   {"OMPI_COMM_WORLD_SIZE", "1"},
                   {"SLURM_STEP_ID", "1"}}),
            "n:8952")
      << "of hosts that mpirun reaches by a step, and of the one that it runs on";
  for (const char* wrong : {"0", "x", "70000", ""}) {
    EXPECT_THROW(ports({{"COHORT_PORT_BASE", wrong}}), InvalidArgumentError) << wrong;
  }
}

SlurmClusterResolver five_tasks(const std::string& rank, int gpus_per_node, int gpus_per_task) {
  return SlurmClusterResolver({.jobs = {{"ps", 1}, {"worker", 4}},
                               .gpus_per_node = gpus_per_node,
                               .gpus_per_task = gpus_per_task,
                               .variables = step(rank, "5", "2(x2),1")});
}

TEST(SlurmClusterResolverTest, TasksOfAHostHavePortsAndGpusThatFollow) {
  const SlurmClusterResolver resolver = five_tasks("1", 2, 1);
  EXPECT_EQ(
      resolver.cluster_spec(),
      ClusterSpec({{"ps", {"t02n13:8888"}},
                   {"worker", {"t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.cuda_visible_devices(), "1");
  EXPECT_EQ(resolver.num_accelerators()->at("GPU"), 1);
  EXPECT_EQ(five_tasks("1", 4, 2).cuda_visible_devices(), "2,3");
  EXPECT_EQ(five_tasks("4", 4, 2).cuda_visible_devices(), "0,1");
  EXPECT_EQ(thrown<FailedPreconditionError>([] { five_tasks("1", 2, 2); }),
            "Slurm: 2 tasks of a host ask for 2 GPUs each; the host has 2");
}

TEST(SlurmClusterResolverTest, ChoosesAmongTheGpusThatSlurmShows) {
  Variables variables = step("1", "2", "2", "n1");
  const auto visible = [&] {
    return SlurmClusterResolver({.variables = variables}).cuda_visible_devices();
  };
  variables["SLURM_GPUS_ON_NODE"] = "4";
  EXPECT_EQ(visible(), "2,3");
  variables["CUDA_VISIBLE_DEVICES"] = "4,5,6,7";
  EXPECT_EQ(visible(), "6,7");
  variables["CUDA_VISIBLE_DEVICES"] = "5";  // one for two tasks, and nobody asked: both see it
  EXPECT_EQ(visible(), "");
  variables["SLURM_GPUS_PER_TASK"] = "a100:1";  // bound to each task by Slurm
  EXPECT_EQ(visible(), "5");
}

TEST(SlurmClusterResolverTest, SetsTheProcessesDevices) {
  const auto set = [](const char* name, const char* value) { setenv(name, value, 1); };
  const Variables variables = step("1", "2", "2", "n1");
  for (const auto& [name, value] : variables) set(name.c_str(), value.c_str());
  const SlurmClusterResolver untouched({.gpus_per_node = 2, .auto_set_gpu = false});
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "");
  const SlurmClusterResolver resolver({.gpus_per_node = 2});
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "1");
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
}

TEST(SlurmClusterResolverTest, KeepsZerosAndSlurmsOrderOfHosts) {
  const SlurmClusterResolver resolver({.variables = step("0", "4", "1(x4)", "n[9-10],m[08-09]")});
  EXPECT_EQ(resolver.cluster_spec(),
            ClusterSpec({{"worker", {"n9:8888", "n10:8888", "m08:8888", "m09:8888"}}}));
}

TEST(SlurmClusterResolverTest, RanksLieAsSlurmDistributesThem) {
  Variables variables = step("1", "3", "2,1", "a,b");
  variables["SLURM_NODEID"] = "1";
  variables["SLURM_LOCALID"] = "0";
  EXPECT_EQ(
      thrown<FailedPreconditionError>([&] { SlurmClusterResolver({.variables = variables}); }),
      "Slurm: rank 1 is task 0 of host 1; by the environment's lists it would be task 1 of "
      "host 0; start the step with srun --distribution=block");
  variables["SLURM_DISTRIBUTION"] = "cyclic";
  EXPECT_EQ(SlurmClusterResolver({.variables = variables}).cluster_spec(),
            ClusterSpec({{"worker", {"a:8888", "b:8888", "a:8889"}}}));
}

TEST(SlurmClusterResolverTest, MorePlacesThanTasksTakeNoMemory) {
  for (const char* distribution : {"block", "cyclic"}) {
    Variables variables = step("1", "2", "999999999(x3)", "a,b,b");
    variables["SLURM_DISTRIBUTION"] = distribution;
    EXPECT_EQ(SlurmClusterResolver({.variables = variables}).cluster_spec().num_tasks(), 2)
        << distribution;
  }
}

TEST(SlurmClusterResolverTest, ReadsTheJobsVariablesOutsideOfAStep) {
  const Variables job = {{"SLURM_PROCID", "0"},
                         {"SLURM_NTASKS", "4"},
                         {"SLURM_JOB_NODELIST", "n[1-2]"},
                         {"SLURM_NTASKS_PER_NODE", "2"}};
  const ClusterSpec spec({{"worker", {"n1:8888", "n1:8889", "n2:8888", "n2:8889"}}});
  EXPECT_EQ(SlurmClusterResolver({.variables = job}).cluster_spec(), spec);
  EXPECT_EQ(SlurmClusterResolver({.tasks_per_node = 2, .variables = job}).cluster_spec(), spec);
  Variables mpirun = job;
  mpirun["OMPI_COMM_WORLD_RANK"] = "3";
  mpirun["OMPI_COMM_WORLD_SIZE"] = "4";
  EXPECT_EQ(SlurmClusterResolver({.variables = mpirun}).task_id(), 3);
}

TEST(SlurmClusterResolverTest, SaysWhatIsMissingOrWrong) {
  const auto failed = [](const SlurmClusterResolverOptions& options) {
    return thrown<FailedPreconditionError>([&] { SlurmClusterResolver{options}; });
  };
  const auto wrong = [](const SlurmClusterResolverOptions& options) {
    return thrown<InvalidArgumentError>([&] { SlurmClusterResolver{options}; });
  };
  EXPECT_EQ(failed({.variables = Variables{}}),
            "SLURM_PROCID is not set in the environment; was this program started by srun?");
  Variables no_hosts = step("0", "1", "1");
  no_hosts.erase("SLURM_STEP_NODELIST");
  EXPECT_THAT(failed({.variables = no_hosts}), HasSubstr("SLURM_STEP_NODELIST is not set"));
  EXPECT_EQ(failed({.jobs = {{"worker", 2}}, .variables = step("0", "3", "1(x3)")}),
            "Slurm: `jobs` has 2 tasks, and the step 3; they must be as many");
  EXPECT_EQ(failed({.tasks_per_node = 1, .variables = step("0", "5", "2(x2),1")}),
            "Slurm: 5 tasks do not fit 3 hosts with 3 tasks together");
  EXPECT_THAT(wrong({.variables = step("0", "3", "1(x2)")}), HasSubstr("is for 2 hosts"));
  EXPECT_THAT(wrong({.variables = step("0", "3", "1(x3)", "n[3-1]")}), HasSubstr("n[3-1]"));
  EXPECT_THAT(wrong({.variables = step("one", "3", "1(x3)")}), HasSubstr("SLURM_PROCID"));
  EXPECT_THAT(wrong({.variables = step("3", "3", "1(x3)")}), HasSubstr("rank 3 of 3 tasks"));
  EXPECT_THAT(wrong({.port_base = 65535, .variables = step("0", "2", "2", "n")}),
              HasSubstr("port 65536"));
  EXPECT_THAT(wrong({.jobs = {{"ps", -1}, {"worker", 2}}, .variables = step("0", "1", "1", "n")}),
              HasSubstr("job 'ps' has -1 tasks"));
  EXPECT_EQ(wrong({.gpus_per_node = -1, .variables = step("0", "1", "1", "n")}),
            "Slurm: gpus_per_node is -1; it must not be negative");
}

}  // namespace
}  // namespace cohort::distribute::cluster_resolver
